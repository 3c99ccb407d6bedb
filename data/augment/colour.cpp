// Compiled without contraction: a product and a sum are rounded apart, as Pillow's are.
#include "data/augment/colour.h"

#include <algorithm>
#include <array>

#include "data/augment/scratch.h"

namespace tessera {

namespace {

using Table = std::array<uint8_t, 256>;
using Histogram = std::array<int, 256>;

uint8_t to_byte(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

template <class F> Table tabled(F&& f) {
  Table table;
  for (int v = 0; v < 256; ++v) table[static_cast<size_t>(v)] = to_byte(static_cast<int>(f(v)));
  return table;
}

void look_up(Image& image, const Table& table) {
  for (uint8_t& v : image.pixels) v = table[v];
}

void look_up(Image& image, const std::array<Table, 3>& tables) {
  uint8_t* p = image.pixels.data();
  for (const uint8_t* const end = p + image.pixels.size(); p < end; p += 3) {
    p[0] = tables[0][p[0]];
    p[1] = tables[1][p[1]];
    p[2] = tables[2][p[2]];
  }
}

std::array<Histogram, 3> histograms(const Image& image) {
  std::array<Histogram, 3> counts{};
  const uint8_t* p = image.pixels.data();
  for (const uint8_t* const end = p + image.pixels.size(); p < end; p += 3) {
    ++counts[0][p[0]];
    ++counts[1][p[1]];
    ++counts[2][p[2]];
  }
  return counts;
}

constexpr int luminance(int red, int green, int blue) {
  return (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16;
}

// The mean grey, rounded.
int mean_luminance(const Image& image) {
  int64_t sum = 0;
  const uint8_t* p = image.pixels.data();
  for (const uint8_t* const end = p + image.pixels.size(); p < end; p += 3)
    sum += luminance(p[0], p[1], p[2]);
  const auto pixels = static_cast<double>(image.pixels.size() / 3);
  return static_cast<int>(static_cast<double>(sum) / pixels + 0.5);
}

uint8_t blend(int a, int b, float factor) {
  const float mixed = static_cast<float>(a) + factor * static_cast<float>(b - a);
  return static_cast<uint8_t>(static_cast<int>(std::clamp(mixed, 0.0f, 255.0f)));
}

Table blended_from(int degenerate, double factor) {
  return tabled([=](int v) { return blend(degenerate, v, static_cast<float>(factor)); });
}

Table stretched(const Histogram& counts) {
  int low = 0, high = 255;
  while (low < 255 && counts[static_cast<size_t>(low)] == 0) ++low;
  while (high > 0 && counts[static_cast<size_t>(high)] == 0) --high;
  if (high <= low) return tabled([](int v) { return v; });
  const double scale = 255.0 / (high - low), offset = -low * scale;
  return tabled([=](int v) { return v * scale + offset; });
}

Table equalized(const Histogram& counts, int64_t pixels) {
  const auto last = std::find_if(counts.rbegin(), counts.rend(), [](int n) { return n > 0; });
  const int64_t step = last == counts.rend() ? 0 : (pixels - *last) / 255;
  if (step == 0) return tabled([](int v) { return v; });
  int64_t before = step / 2;
  return tabled([&](int v) {
    const int64_t rank = before / step;
    before += counts[static_cast<size_t>(v)];
    return std::min<int64_t>(rank, 255);
  });
}

}  // namespace

void invert(Image& image) {
  for (uint8_t& v : image.pixels) v = static_cast<uint8_t>(255 - v);
}

void posterize(Image& image, int bits) {
  const auto kept = static_cast<uint8_t>(~((1 << (8 - std::clamp(bits, 0, 8))) - 1));
  for (uint8_t& v : image.pixels) v &= kept;
}

void solarize(Image& image, double threshold) {
  look_up(image, tabled([=](int v) { return v < threshold ? v : 255 - v; }));
}

void solarize_add(Image& image, int amount, int threshold) {
  look_up(image, tabled([=](int v) { return v < threshold ? std::clamp(v + amount, 0, 255) : v; }));
}

void auto_contrast(Image& image) {
  const auto counts = histograms(image);
  look_up(image, {stretched(counts[0]), stretched(counts[1]), stretched(counts[2])});
}

void equalize(Image& image) {
  const auto counts = histograms(image);
  const auto pixels = static_cast<int64_t>(image.pixels.size() / 3);
  look_up(image, {equalized(counts[0], pixels), equalized(counts[1], pixels), equalized(counts[2], pixels)});
}

void enhance_colour(Image& image, double factor) {
  const auto f = static_cast<float>(factor);
  uint8_t* p = image.pixels.data();
  for (const uint8_t* const end = p + image.pixels.size(); p < end; p += 3) {
    const int grey = luminance(p[0], p[1], p[2]);
    for (int c = 0; c < 3; ++c) p[c] = blend(grey, p[c], f);
  }
}

void enhance_contrast(Image& image, double factor) {
  if (!image.pixels.empty()) look_up(image, blended_from(mean_luminance(image), factor));
}

void enhance_brightness(Image& image, double factor) { look_up(image, blended_from(0, factor)); }

// Smoothed by 3 x 3 weights of 1, the centre's 5, over 13; the border is as it was.
void enhance_sharpness(Image& image, double factor) {
  if (image.height < 3 || image.width < 3) return;
  const auto f = static_cast<float>(factor);
  const Image& from = set_aside(image);
  const int row = 3 * image.width;
  image.pixels = from.pixels;
  for (int y = 1; y < image.height - 1; ++y) {
    const uint8_t *above = from.at(y - 1, 0), *here = from.at(y, 0), *below = from.at(y + 1, 0);
    uint8_t* to = image.at(y, 0);
#pragma omp simd
    for (int i = 3; i < row - 3; ++i) {
      const int sum = above[i - 3] + above[i] + above[i + 3] + here[i - 3] + 5 * here[i] + here[i + 3] +
                      below[i - 3] + below[i] + below[i + 3];
      to[i] = blend((2 * sum + 13) / 26, here[i], f);
    }
  }
}

}  // namespace tessera
