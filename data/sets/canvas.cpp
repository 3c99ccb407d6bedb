#include "data/sets/canvas.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tessera {

namespace {

constexpr double texture_depth = 0.35;   // largest distance between a texture's colours in the unit cube
constexpr double least_contrast = 0.45;  // smallest distance between colours of shape and background
constexpr int noise = 10;                // uniform on +- this, of 255, for each channel

Paint random_paint(const Brightness& in, Random& random) {
  Paint paint;
  for (double& channel : paint) channel = random.uniform(in.low, in.high);
  return paint;
}

double distance(const Paint& a, const Paint& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

uint8_t to_byte(double value, uint32_t draw) {  // draw: 0 .. 255
  const double jitter = (static_cast<double>(draw) / 127.5 - 1) * noise;
  return static_cast<uint8_t>(std::clamp(std::lround(255 * value + jitter), 0L, 255L));
}

}  // namespace

double Texture::mix(int y, int x) const {
  const double u = fx * x + fy * y + phase, v = fx * y - fy * x + 2 * phase;
  switch (kind) {
    case gradient:
      return 0.5 + 0.5 * std::sin(0.15 * u);
    case stripes:
      return std::sin(u) > 0 ? 1 : 0;
    case checks:
      return std::sin(u) * std::sin(v) > 0 ? 1 : 0;
    case blobs:
      return 0.5 + 0.25 * (std::sin(0.6 * u + std::cos(0.5 * v)) + std::sin(0.45 * v + phase));
    default:
      return 0;
  }
}

Texture random_texture(const Brightness& in, Random& random) {
  Texture texture{random_paint(in, random), random_paint(in, random), random.below(Texture::kinds), 0, 0, 0};
  const double depth = distance(texture.low, texture.high), keep = std::min(1.0, texture_depth / depth);
  for (size_t c = 0; c < 3; ++c) texture.high[c] = texture.low[c] + keep * (texture.high[c] - texture.low[c]);
  const double angle = random.uniform(0, 2 * std::numbers::pi), frequency = random.uniform(0.5, 1.6);
  texture.fx = frequency * std::cos(angle);
  texture.fy = frequency * std::sin(angle);
  texture.phase = random.uniform(0, 2 * std::numbers::pi);
  return texture;
}

Texture contrasting_texture(const Texture& behind, Random& random) {
  for (;;) {
    const Texture texture = random_texture(bright, random);
    const double nearest =
        std::min({distance(texture.low, behind.low), distance(texture.low, behind.high),
                  distance(texture.high, behind.low), distance(texture.high, behind.high)});
    if (nearest >= least_contrast) return texture;
  }
}

void Canvas::paint(const std::vector<float>& cover, const Texture& texture) {
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x) {
      const size_t i = static_cast<size_t>(y * size + x);
      if (cover[i] <= 0) continue;
      const double share = cover[i], mix = texture.mix(y, x);
      for (size_t c = 0; c < 3; ++c) {
        const double colour = texture.low[c] + mix * (texture.high[c] - texture.low[c]);
        pixels[i][c] += share * (colour - pixels[i][c]);
      }
    }
}

Image Canvas::to_image(Random& random) const {
  Image image(size, size);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const uint32_t draws = random.bits();
    for (size_t c = 0; c < 3; ++c) image.pixels[3 * i + c] = to_byte(pixels[i][c], draws >> (8 * c) & 255u);
  }
  return image;
}

}  // namespace tessera
