#pragma once

#include <cstdint>
#include <span>

namespace tessera {

// A picture that is refused takes no more memory than its file and 64 MB, but for a progressive JPEG, which
// must be held whole. One that would take more than the file and half of that, at `pixel_bytes` a pixel, is
// walked through without keeping its pixels first.
inline bool takes_much(std::span<const uint8_t> bytes, int64_t height, int64_t width, int64_t pixel_bytes) {
  constexpr int64_t allowance = int64_t{1} << 25;
  return height * width * pixel_bytes > static_cast<int64_t>(bytes.size()) + allowance;
}

}  // namespace tessera
