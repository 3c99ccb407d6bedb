#include <doctest/doctest.h>

#include <cmath>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/core/dispatch.h"
#include "engine/ops/activations_bf16.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/conv.h"
#include "engine/ops/elementwise.h"
#include "tests/error_of.h"
#include "tests/sanitized.h"

using namespace tessera;

namespace {

// Parameters and statistics of a batch norm of so many channels, unlike one another.
FixedNorm norm_of(int64_t channels, DType dtype) {
  const auto some = [&](uint64_t seed) { return random_tensor({channels}, seed); };
  const Tensor off = some(4), eps = Tensor::full({channels}, 0.1).to(DType::f64);
  return {some(1).to(dtype), some(2).to(dtype), some(3).to(wide(dtype)),
          add(multiply(off, off), eps).to(wide(dtype))};
}

std::string batch_norm_error(const Tensor& y, const FixedNorm& norm) {
  return error_of([&] { batch_norm(y, norm.weight, norm.bias, norm.running_mean, norm.running_var, {}); });
}

struct Sizes {
  Shape x, weight;
  ConvOptions options;
};

// The op `normed` beside batch norm, residual and activation of what `convolve` gives, in every type.
void check_normed(decltype(conv2d) convolve, decltype(normed_conv2d) normed, const Sizes& sizes) {
  const int64_t out = sizes.weight[0];
  CAPTURE(sizes.x);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    CAPTURE(dtype);
    const Tensor x = random_tensor(sizes.x, 5).to(dtype), weight = random_tensor(sizes.weight, 6).to(dtype),
                 bias = random_tensor({out}, 7).to(dtype);
    const FixedNorm norm = norm_of(out, dtype);
    const Tensor y = convolve(x, weight, bias, sizes.options);
    const Tensor residual = random_tensor(y.shape(), 8).to(dtype);
    const auto fused = [&](Activation f, const Tensor& added) {
      return normed(x, weight, bias, sizes.options, norm, f, added);
    };
    if (x.elements() == 0) {
      CHECK(error_of([&] { fused(Activation::relu, {}); }) == batch_norm_error(y, norm));
      continue;
    }
    for (const Activation f : all_activations) {
      CAPTURE(name(f));
      // The kernels for bf16 fuse a product with its sum; beside them, a sanitizer's build has none that do.
      if (sanitized && dtype == DType::bf16 && !bf16_function(f)) continue;
      const auto in_parts = [&](Activation own) {
        return batch_norm(y, norm.weight, norm.bias, norm.running_mean, norm.running_var, {.f = own});
      };
      CHECK(fused(f, {}).values() == in_parts(f).values());
      CHECK(fused(f, residual).values() == activation(f, add(in_parts(Activation::none), residual)).values());
    }
  }
}

}  // namespace

TEST_CASE("a normed convolution has the bits of its ops one after the other") {
  // Rows of one and several bands, few channels and a last panel that is not whole, a stride, patches, a
  // linear map.
  const Sizes all[] = {{{2, 40, 24, 16}, {16, 16, 3, 3}, {1, 1}}, {{3, 9, 7, 3}, {35, 3, 3, 3}, {1, 1}},
                       {{2, 11, 13, 8}, {20, 8, 5, 5}, {2, 2}},   {{1, 70, 33, 32}, {64, 32, 3, 3}, {1, 1}},
                       {{2, 9, 9, 4}, {7, 4, 3, 3}, {3, 0}},      {{2, 5, 6, 9}, {33, 9, 1, 1}, {1, 0}},
                       {{0, 9, 7, 3}, {5, 3, 3, 3}, {1, 1}}};
  for (const Sizes& sizes : all) check_normed(conv2d, normed_conv2d, sizes);
}

TEST_CASE("a normed depthwise convolution has the bits of its ops one after the other") {
  // The last panel is not whole, two filters a channel, single pixels.
  const Sizes all[] = {{{2, 9, 7, 48}, {48, 1, 3, 3}, {1, 1}},
                       {{1, 8, 11, 75}, {75, 1, 5, 5}, {2, 2}},
                       {{2, 6, 6, 4}, {8, 1, 3, 3}, {1, 1}},
                       {{3, 5, 5, 33}, {33, 1, 1, 1}, {1, 0}},
                       {{0, 9, 7, 3}, {3, 1, 3, 3}, {1, 1}}};
  for (const Sizes& sizes : all) check_normed(depthwise_conv2d, normed_depthwise_conv2d, sizes);
}

TEST_CASE("a normed convolution hides no NaN") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    CAPTURE(dtype);
    const Tensor x = random_tensor({1, 1, 40, 1}, 1), weight = random_tensor({16, 1, 1, 3}, 2);
    x.data<double>()[7] = std::nan("");
    const Tensor y =
        normed_conv2d(x.to(dtype), weight.to(dtype), {}, {}, norm_of(16, dtype), Activation::relu);
    for (int64_t i = 0; i < 38; ++i)
      CHECK(std::isnan(y.values()[static_cast<size_t>(16 * i + i % 16)]) == (i >= 5 && i <= 7));
  }
}

TEST_CASE("a normed convolution reads nothing in a dry run") {
  const DryRun dry;
  const Tensor x = Tensor::empty({2, 9, 7, 3}), weight = Tensor::empty({16, 3, 3, 3}),
               one = Tensor::empty({16});
  const Tensor y = normed_conv2d(x, weight, {}, {}, {one, one, one, one}, Activation::relu);
  CHECK(y.shape() == Shape{2, 7, 5, 16});
}

TEST_CASE("a normed convolution names what does not fit, and is not recorded") {
  const Tensor x = random_tensor({1, 4, 4, 2}, 1), weight = random_tensor({3, 2, 3, 3}, 2);
  FixedNorm norm = norm_of(3, DType::f64);
  const auto error = [&](const Tensor& residual = {}) {
    return error_of([&] { normed_conv2d(x, weight, {}, {.padding = 1}, norm, Activation::relu, residual); });
  };
  CHECK(error(random_tensor({1, 4, 4, 2}, 3)) ==
        "normed_conv2d: output f64 [1, 4, 4, 3] takes a residual like it, not f64 [1, 4, 4, 2]");
  norm.running_var = random_tensor({2}, 1);
  CHECK(error() == "normed_conv2d: output f64 [1, 4, 4, 3] takes running variance f64 [3], not f64 [2]");
  const auto depthwise_error = [&] {
    const Tensor each = random_tensor({2, 1, 3, 3}, 2);
    return error_of([&] { normed_depthwise_conv2d(x, each, {}, {.padding = 1}, norm, Activation::relu); });
  };
  norm = norm_of(3, DType::f64);
  CHECK(depthwise_error() ==
        "normed_depthwise_conv2d: output f64 [1, 4, 4, 2] takes weight f64 [2], not f64 [3]");
  const Tape tape;
  CHECK(error().find("a tape records") != std::string::npos);
  CHECK(depthwise_error().find("normed_depthwise_conv2d: a tape records") == 0);
}
