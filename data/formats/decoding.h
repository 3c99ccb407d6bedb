#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tessera {

// Whether an image must be verified without keeping its pixels before it is decoded, because its pixels, at
// `pixel_bytes` each, would exceed the file's size by more than 32 MB. In this way a damaged file takes no
// more memory than its size and 64 MB. Progressive JPEGs can only be decoded whole; check_jpeg_density()
// bounds them.
inline bool must_verify_first(std::span<const uint8_t> bytes, int64_t height, int64_t width,
                              int64_t pixel_bytes) {
  constexpr int64_t allowance = int64_t{1} << 25;
  return height * width * pixel_bytes > static_cast<int64_t>(bytes.size()) + allowance;
}

// Fails, with a message that begins with `path`, for a JPEG with less than a bit for each block of 8 x 8
// pixels: its Huffman codes have at least one, so a part is missing, and the rest would be made up.
// Arithmetic coding could do with less for an even area, but is not met in practice.
void check_jpeg_density(std::span<const uint8_t> bytes, int64_t height, int64_t width,
                        const std::string& path);

}  // namespace tessera
