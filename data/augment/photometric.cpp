// Compiled without contraction, as all of data, so that floats are rounded where OpenCV rounds them.
#include "data/augment/photometric.h"

#include <algorithm>
#include <cmath>

namespace tessera {

namespace {

// Hue in [0, 180), saturation and value in [0, 255].
struct Hsv {
  int h, s, v;
};

// OpenCV's conversion of bytes: 12-bit fixed point with a table of quotients.
Hsv to_hsv(const uint8_t* rgb) {
  constexpr int bits = 12, half = 1 << (bits - 1), turn = 180;
  const int r = rgb[0], g = rgb[1], b = rgb[2];
  const int v = std::max({r, g, b}), span = v - std::min({r, g, b});
  const auto quotient = [](double scale, int by) {
    return by == 0 ? 0 : static_cast<int>(std::nearbyint(scale * (1 << bits) / by));
  };
  const int s = (span * quotient(255, v) + half) >> bits;
  const int sixth = v == r ? g - b : v == g ? b - r + 2 * span : r - g + 4 * span;
  const int h = (sixth * quotient(turn / 6.0, span) + half) >> bits;
  return {h < 0 ? h + turn : h, s, v};
}

// Rounds down, as OpenCV's vector loops do. (OpenCV rounds the last pixels of a row, which fill no vector, to
// the nearest; that is not imitated.)
void from_hsv(const Hsv& hsv, uint8_t* rgb) {
  const float s = static_cast<float>(hsv.s) * (1.0f / 255), v = static_cast<float>(hsv.v) * (1.0f / 255);
  const float sixths = static_cast<float>(hsv.h) * (6.0f / 180);
  const int sector = static_cast<int>(sixths) % 6;
  const float part = sixths - static_cast<float>(static_cast<int>(sixths));
  const float levels[4] = {v, v * (1 - s), v * std::fma(-s, part, 1.0f), v * std::fma(-s, 1 - part, 1.0f)};
  constexpr int ways[6][3] = {{0, 3, 1}, {2, 0, 1}, {1, 0, 3}, {1, 2, 0}, {3, 1, 0}, {0, 1, 2}};
  for (int c = 0; c < 3; ++c)
    rgb[c] = static_cast<uint8_t>(std::clamp(levels[ways[sector][c]] * 255, 0.0f, 255.0f));
}

template <class F> void change_hsv(Image& image, F&& change) {
  for (size_t p = 0; p < image.pixels.size(); p += 3) {
    Hsv hsv = to_hsv(&image.pixels[p]);
    change(hsv);
    from_hsv(hsv, &image.pixels[p]);
  }
}

int scaled(int value, float factor, float offset) {
  return static_cast<int>(std::clamp(static_cast<float>(value) * factor + offset, 0.0f, 255.0f));
}

}  // namespace

void scale_values(Image& image, float factor, float offset) {
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(scaled(value, factor, offset));
}

void scale_saturation(Image& image, float factor) {
  change_hsv(image, [factor](Hsv& hsv) { hsv.s = scaled(hsv.s, factor, 0); });
}

void shift_hue(Image& image, int64_t shift) {
  const int turned = static_cast<int>((shift % 180 + 180) % 180);
  change_hsv(image, [turned](Hsv& hsv) { hsv.h = (hsv.h + turned) % 180; });
}

void Photometric::operator()(Image& image, Random& random, Layer layer) const {
  const auto half_of_the_time = [&](auto&& draw, auto&& apply) {
    if (!random.chance(0.5)) return;
    const auto drawn = draw();
    if (layer == Layer::picture) apply(drawn);
  };
  const auto between = [&](double low, double high) {
    return [&random, low, high] { return static_cast<float>(random.uniform(low, high)); };
  };
  const auto contrast = [&] {
    half_of_the_time(between(options.min_contrast, options.max_contrast),
                     [&](float factor) { scale_values(image, factor, 0); });
  };
  half_of_the_time(between(-options.brightness, options.brightness),
                   [&](float offset) { scale_values(image, 1, offset); });
  const bool contrast_first = random.chance(0.5);
  if (contrast_first) contrast();
  half_of_the_time(between(options.min_saturation, options.max_saturation),
                   [&](float factor) { scale_saturation(image, factor); });
  half_of_the_time([&] { return random.below(std::max<int64_t>(2 * options.hue, 1)) - options.hue; },
                   [&](int64_t shift) { shift_hue(image, shift); });
  if (!contrast_first) contrast();
}

}  // namespace tessera
