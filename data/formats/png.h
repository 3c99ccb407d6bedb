#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tessera {

// Verifies a PNG's chunks and their checksums up to the end chunk, which stb_image does not do, and its size.
// Fails with path and byte if something is damaged or missing or beyond the limits of image.h.
void check_png(std::span<const uint8_t> bytes, const std::string& path);

// Verifies the pixels of a PNG that passed check_png by inflating and dropping them: fails unless they are
// complete and every row's filter exists. Large images are verified so before memory for them is allocated.
void check_png_pixels(std::span<const uint8_t> bytes, const std::string& path);

}  // namespace tessera
