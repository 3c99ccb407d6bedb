#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tessera {

// Fails as decode_image does, with a message that begins with `path`, for an image file of another format,
// past the limits of image.h, cut short, or with a part that is missing. It is many times faster, since no
// pixel is decoded: a PNG's damage is found by its checksums, but damage inside the pixels of a JPEG goes
// unnoticed.
void check_intact(std::span<const uint8_t> bytes, const std::string& path);

}  // namespace tessera
