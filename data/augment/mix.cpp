#include "data/augment/mix.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/augment/mix_kernels.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"

namespace tessera {

namespace {

// A sample of the distribution Gamma(shape, 1), shape >= 1 (Marsaglia and Tsang, 2000).
double draw_gamma(double shape, Random& random) {
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), root = 1 + c * x, v = root * root * root;
    if (v > 0 && std::log(1 - random.uniform()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

// Writes image b of the mixed batch.
void mix_image(const float* own, const float* other, const Mix& mix, const Shape& shape, float* to) {
  const int64_t height = shape[2], width = shape[3], floats = shape.elements() / shape[0];
  if (!mix.cut) {
    const Mixup mixup(mix.lam);
    for (int64_t i = 0; i < floats; ++i) to[i] = mixup(own[i], other[i]);
    return;
  }
  std::copy_n(own, floats, to);
  for (int64_t plane = 0; plane < floats; plane += height * width)
    for (int64_t y = mix.box.top; y < mix.box.bottom; ++y)
      std::copy(other + plane + y * width + mix.box.left, other + plane + y * width + mix.box.right,
                to + plane + y * width + mix.box.left);
}

}  // namespace

double draw_beta(double a, Random& random) {
  check(a > 0, "mix: Beta(", a, ", ", a, ") is no distribution");
  // Gamma(a) = Gamma(a + 1) u^(1/a), whose logarithm stays finite for any a.
  const auto log_gamma_draw = [&] {
    const double gamma = draw_gamma(a + 1, random);
    return std::log(gamma) + std::log(1 - random.uniform()) / a;
  };
  const double x = log_gamma_draw(), y = log_gamma_draw();
  return 1 / (1 + std::exp(y - x));
}

PixelBox cutmix_box(int64_t height, int64_t width, double lam, int64_t row, int64_t column) {
  const double side = std::sqrt(1 - lam);
  const auto half = [side](int64_t n) { return static_cast<int64_t>(static_cast<double>(n) * side) / 2; };
  return {std::max<int64_t>(row - half(height), 0), std::max<int64_t>(column - half(width), 0),
          std::min(row + half(height), height), std::min(column + half(width), width)};
}

double share_outside(const PixelBox& box, int64_t height, int64_t width) {
  return 1 - static_cast<double>(box.area()) / static_cast<double>(height * width);
}

Mix draw_mix(const MixOptions& options, int64_t images, int64_t height, int64_t width, Random& random) {
  Mix mix;
  if (!options.any() || !random.chance(options.probability)) return mix;
  mix.cut = options.cutmix > 0 && (options.mixup == 0 || random.chance(options.cutmix_share));
  mix.lam = draw_beta(mix.cut ? options.cutmix : options.mixup, random);
  mix.partners.resize(static_cast<size_t>(images));
  std::iota(mix.partners.begin(), mix.partners.end(), int64_t{0});
  for (int64_t i = images - 1; i > 0; --i)
    std::swap(mix.partners[static_cast<size_t>(i)], mix.partners[static_cast<size_t>(random.below(i + 1))]);
  if (mix.cut) {
    const int64_t row = random.below(height), column = random.below(width);
    mix.box = cutmix_box(height, width, mix.lam, row, column);
    mix.lam = share_outside(mix.box, height, width);
  }
  return mix;
}

void mix_images(const Tensor& images, const Mix& mix, Tensor& to) {
  const Shape& shape = images.shape();
  check(shape.rank() == 4 && std::ssize(mix.partners) == shape[0] && to.shape() == shape, "mix: images ",
        shape, " with ", mix.partners.size(), " partners into ", to.shape());
  const int64_t floats = shape.elements() / shape[0];
  const float* from = images.data<float>();
  float* mixed = to.data<float>();
  parallel_for(shape[0], 16, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      mix_image(from + b * floats, from + mix.partners[static_cast<size_t>(b)] * floats, mix, shape,
                mixed + b * floats);
  });
}

void partner_labels(const Tensor& labels, const Mix& mix, Tensor& to) {
  check(labels.elements() == std::ssize(mix.partners) && to.shape() == labels.shape(), "mix: labels ",
        labels.shape(), " with ", mix.partners.size(), " partners into ", to.shape());
  for (size_t b = 0; b < mix.partners.size(); ++b)
    to.data<int64_t>()[b] = labels.data<int64_t>()[mix.partners[b]];
}

}  // namespace tessera
