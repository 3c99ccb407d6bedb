#pragma once

#ifdef TESSERA_JPEG

#include <span>
#include <string>

#include "data/formats/image.h"

namespace tessera {

// Decodes a JPEG with libjpeg-turbo. False, with `image` untouched, for the four-component files (CMYK) that
// it does not turn into RGB. Fails, in the name of `path`, for a damaged or shortened file and past the
// limits.
bool decode_jpeg(std::span<const uint8_t> bytes, const std::string& path, Image& image);

}  // namespace tessera

#endif
