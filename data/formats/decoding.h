#pragma once

#include <cstdint>
#include <span>

namespace tessera {

// Whether an image must be verified without keeping its pixels before it is decoded, because its pixels, at
// `pixel_bytes` each, would exceed the file's size by more than 32 MB. In this way a damaged file takes no
// more memory than its size and 64 MB. Progressive JPEGs are the exception: they can only be decoded whole.
inline bool must_verify_first(std::span<const uint8_t> bytes, int64_t height, int64_t width,
                              int64_t pixel_bytes) {
  constexpr int64_t allowance = int64_t{1} << 25;
  return height * width * pixel_bytes > static_cast<int64_t>(bytes.size()) + allowance;
}

}  // namespace tessera
