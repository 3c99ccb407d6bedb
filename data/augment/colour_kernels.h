#pragma once

// The scalar maths of the colour operations (colour.h), shared by both devices. It is compiled without
// contraction into fused multiply-adds, so that products and sums are rounded one by one, as Pillow's are.

#include <algorithm>
#include <cstdint>

#include "engine/core/device.h"

namespace tessera {

TESSERA_HD inline uint8_t to_byte(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

TESSERA_HD inline int luminance(int red, int green, int blue) {
  return (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16;
}

// The mean grey, rounded, of an image whose luminances add up to `sum`.
TESSERA_HD inline int rounded_mean(int64_t sum, int64_t pixels) {
  return static_cast<int>(static_cast<double>(sum) / static_cast<double>(pixels) + 0.5);
}

// a + factor (b - a), clipped to 0 .. 255 and truncated.
TESSERA_HD inline uint8_t blend(int a, int b, float factor) {
  const float mixed = static_cast<float>(a) + factor * static_cast<float>(b - a);
  return static_cast<uint8_t>(static_cast<int>(std::clamp(mixed, 0.0f, 255.0f)));
}

TESSERA_HD inline uint8_t inverted(int v) { return static_cast<uint8_t>(255 - v); }

TESSERA_HD inline uint8_t posterized(int v, int bits) {
  return static_cast<uint8_t>(v & ~((1 << (8 - std::clamp(bits, 0, 8))) - 1));
}

TESSERA_HD inline uint8_t solarized(int v, double threshold) { return to_byte(v < threshold ? v : 255 - v); }

TESSERA_HD inline uint8_t solarize_added(int v, int amount, int threshold) {
  return to_byte(v < threshold ? v + amount : v);
}

// auto_contrast for one channel, whose values range from `low` to `high`.
struct Stretch {
  bool any;  // false: the channel stays as it is
  double scale = 1, offset = 0;

  TESSERA_HD Stretch(int low, int high) : any(high > low) {
    if (!any) return;
    scale = 255.0 / (high - low);
    offset = -low * scale;
  }
  TESSERA_HD uint8_t operator()(int v) const {
    return to_byte(any ? static_cast<int>(v * scale + offset) : v);
  }
};

// equalize for one channel of `pixels` pixels, of which `brightest` have the largest value.
struct Equalizer {
  int64_t step;  // 0: the channel stays as it is

  TESSERA_HD Equalizer(int64_t pixels, int64_t brightest) : step((pixels - brightest) / 255) {}
  // The new value for v, where `darker` pixels are below v.
  TESSERA_HD uint8_t operator()(int v, int64_t darker) const {
    return to_byte(step == 0 ? v : static_cast<int>(std::min<int64_t>((step / 2 + darker) / step, 255)));
  }
};

// Sharpens one channel of a pixel: blends it with the smoothed value, whose 3 x 3 weights are 1, in the
// centre 5, divided by 13. Rows are `row` bytes apart.
TESSERA_HD inline uint8_t sharpened(const uint8_t* at, int64_t row, float factor) {
  const uint8_t *above = at - row, *below = at + row;
  const int sum =
      above[-3] + above[0] + above[3] + at[-3] + 5 * at[0] + at[3] + below[-3] + below[0] + below[3];
  return blend((2 * sum + 13) / 26, at[0], factor);
}

}  // namespace tessera
