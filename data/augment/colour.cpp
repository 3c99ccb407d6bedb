// Compiled without contraction: products and sums are rounded one by one, as Pillow's are.
#include "data/augment/colour.h"

#include <algorithm>
#include <array>

#include "data/augment/colour_kernels.h"
#include "data/augment/scratch.h"

namespace tessera {

namespace {

using Table = std::array<uint8_t, 256>;
using Histogram = std::array<int, 256>;

template <class F> Table tabled(F&& f) {
  Table table;
  for (int v = 0; v < 256; ++v) table[static_cast<size_t>(v)] = f(v);
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

// The rounded mean of the luminance.
int mean_luminance(const Image& image) {
  int64_t sum = 0;
  const uint8_t* p = image.pixels.data();
  for (const uint8_t* const end = p + image.pixels.size(); p < end; p += 3)
    sum += luminance(p[0], p[1], p[2]);
  return rounded_mean(sum, static_cast<int64_t>(image.pixels.size() / 3));
}

Table blended_from(int degenerate, double factor) {
  return tabled([=](int v) { return blend(degenerate, v, static_cast<float>(factor)); });
}

Table stretched(const Histogram& counts) {
  int low = 0, high = 255;
  while (low < 255 && counts[static_cast<size_t>(low)] == 0) ++low;
  while (high > 0 && counts[static_cast<size_t>(high)] == 0) --high;
  return tabled(Stretch(low, high));
}

Table equalized(const Histogram& counts, int64_t pixels) {
  const auto last = std::find_if(counts.rbegin(), counts.rend(), [](int n) { return n > 0; });
  const Equalizer equalizer(pixels, last == counts.rend() ? pixels : *last);
  int64_t darker = 0;
  return tabled([&](int v) {
    const uint8_t made = equalizer(v, darker);
    darker += counts[static_cast<size_t>(v)];
    return made;
  });
}

}  // namespace

void invert(Image& image) {
  for (uint8_t& v : image.pixels) v = inverted(v);
}

void posterize(Image& image, int bits) {
  for (uint8_t& v : image.pixels) v = posterized(v, bits);
}

void solarize(Image& image, double threshold) {
  look_up(image, tabled([=](int v) { return solarized(v, threshold); }));
}

void solarize_add(Image& image, int amount, int threshold) {
  look_up(image, tabled([=](int v) { return solarize_added(v, amount, threshold); }));
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

// The border pixels keep their values, as in Pillow.
void enhance_sharpness(Image& image, double factor) {
  if (image.height < 3 || image.width < 3) return;
  const auto f = static_cast<float>(factor);
  const Image& from = set_aside(image);
  const int row = 3 * image.width;
  image.pixels = from.pixels;
  for (int y = 1; y < image.height - 1; ++y) {
    const uint8_t* here = from.at(y, 0);
    uint8_t* to = image.at(y, 0);
#pragma omp simd
    for (int i = 3; i < row - 3; ++i) to[i] = sharpened(here + i, row, f);
  }
}

}  // namespace tessera
