#pragma once

#ifdef TESSERA_JPEG

#include <span>
#include <string>

#include "data/formats/image.h"

namespace tessera {

// Decodes a JPEG with libjpeg-turbo. Returns false, with `image` unchanged, for files with four components
// (CMYK), which it does not convert to RGB. Fails for a damaged or shortened file and beyond the limits of
// image.h; the message begins with `path`.
bool decode_jpeg(std::span<const uint8_t> bytes, const std::string& path, Image& image);

}  // namespace tessera

#endif
