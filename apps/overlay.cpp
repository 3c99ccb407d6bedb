#include "apps/overlay.h"

#include <algorithm>
#include <cmath>

#include "data/resize.h"
#include "engine/autograd/observe.h"
#include "engine/core/error.h"
#include "models/parts/attention.h"

namespace tessera {

namespace {

constexpr int least_side = 224;  // pixels

// Mean over the heads of row 0, the class token's, without its own column. p [1, H, N, N] -> [h, w]
Tensor class_attention(const Tensor& p) {
  const int64_t heads = p.dim(1), tokens = p.dim(2), patches = tokens - 1;
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(patches))));
  check(patches > 0 && side * side == patches, "overlay: the last layer attends to ", tokens,
        " tokens, which are not a class token and a square grid");
  const std::vector<double> values = p.values();
  std::vector<double> mean(static_cast<size_t>(patches));
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t j = 0; j < patches; ++j)
      mean[static_cast<size_t>(j)] +=
          values[static_cast<size_t>(h * tokens * tokens + 1 + j)] / static_cast<double>(heads);
  return Tensor::from(mean, {side, side}, DType::f64);
}

uint8_t byte(double unit) { return static_cast<uint8_t>(std::lround(255 * std::clamp(unit, 0.0, 1.0))); }

// The map scaled to 0 .. 255 and enlarged smoothly.
Image heat_map(const Tensor& attention, int side) {
  const std::vector<double> values = attention.values();
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double range = std::max(*high - *low, 1e-12);
  Image map(static_cast<int>(attention.dim(0)), static_cast<int>(attention.dim(1)));
  for (size_t i = 0; i < values.size(); ++i)
    std::fill_n(map.pixels.begin() + static_cast<int64_t>(3 * i), 3, byte((values[i] - *low) / range));
  return resize_bilinear(map, side, side);
}

// Black, red, yellow, white.
double warm(double heat, int channel) { return std::clamp(3 * heat - channel, 0.0, 1.0); }

}  // namespace

Looked look(const Model& model, const Tensor& image) {
  Looked looked;
  Tensor probabilities;
  const PlainAttention plain;
  const Observer observer([&](const Event& event) {
    if (event.op.name == "softmax") probabilities = event.output;
  });
  Pass pass;
  looked.logits = model.logits(image, pass);
  check(probabilities.defined() && probabilities.rank() == 4, "overlay: this model has no attention to show");
  looked.attention = class_attention(probabilities);
  return looked;
}

Image overlay(const Image& image, const Tensor& attention) {
  const int side = image.height * ((least_side + image.height - 1) / image.height);
  const Image picture = resize_bilinear(image, side, side), heat = heat_map(attention, side);
  Image both(side, 2 * side);
  for (int y = 0; y < side; ++y) {
    std::copy_n(picture.at(y, 0), 3 * side, both.at(y, 0));
    for (int x = 0; x < side; ++x) {
      const double h = heat.at(y, x)[0] / 255.0;
      for (int c = 0; c < 3; ++c)
        both.at(y, side + x)[c] = byte((0.25 + 0.45 * h) * picture.at(y, x)[c] / 255.0 + 0.3 * warm(h, c));
    }
  }
  return both;
}

}  // namespace tessera
