#include "engine/ops/conv.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/core/error.h"
#include "engine/ops/conv_winograd_bf16.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/shape.h"

using namespace tessera;

TEST_CASE("a convolution by hand: zeros outside, the weight not turned") {
  const Tensor x = Tensor::from({1, 2, 3, 4}, {1, 2, 2, 1});
  const Tensor weight = Tensor::from({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3});
  const Tensor y = conv2d(x, weight, Tensor::from({0.5}, {1}), {.stride = 1, .padding = 1});
  // y[0, 0] = 5*1 + 6*2 + 8*3 + 9*4
  CHECK(y.values() == std::vector<double>{77.5, 67.5, 47.5, 37.5});
  CHECK(conv2d(x, weight, {}, {.stride = 2, .padding = 1}).values() == std::vector<double>{77});
}

TEST_CASE("minimal filtering is the sum of what few channels give directly, at any border") {
  struct Map {
    int64_t height, width, padding;
  };
  for (const Map& map : {Map{8, 6, 1}, Map{9, 7, 0}, Map{5, 33, 2}, Map{7, 64, 1}})
    for (const int64_t in : {16, 48, 32}) {
      const int64_t height = map.height, width = map.width, padding = map.padding,
                    out = in == 16 ? 16 : 80 - in;
      CAPTURE(height);
      CAPTURE(in);
      const Tensor x = random_tensor({2, height, width, in}, 1), weight = random_tensor({out, in, 3, 3}, 2),
                   bias = random_tensor({out}, 3);
      const ConvOptions options{.stride = 1, .padding = padding};
      REQUIRE(by_winograd(
          {2, height, width, in, out, 3, 3, 1, padding, height + 2 * padding - 2, width + 2 * padding - 2}));
      Tensor direct = conv2d(slice(x, 3, 0, 8), slice(weight, 1, 0, 8), bias, options);
      for (int64_t c = 8; c < in; c += 8)
        direct = direct + conv2d(slice(x, 3, c, 8), slice(weight, 1, c, 8), {}, options);
      CHECK(relative_error(conv2d(x, weight, bias, options), direct) < 1e-14);
      const DType f32 = DType::f32;
      CHECK(relative_error(conv2d(x.to(f32), weight.to(f32), bias.to(f32), options), direct) < 2e-6);
    }
}

// A number is rounded at the points and once more as an output; the largest errors of 10^5 outputs are near 6
// thousandths of the largest output.
TEST_CASE("minimal filtering in bf16 is the convolution in double within its rounding, at any border") {
  struct Map {
    int64_t height, width, padding;
  };
  for (const Map& map : {Map{8, 6, 1}, Map{9, 7, 0}, Map{5, 33, 2}, Map{1, 64, 2}, Map{40, 34, 1}})
    for (const auto& widths : std::initializer_list<std::array<int64_t, 2>>{{32, 96}, {96, 32}, {64, 64}}) {
      const auto in = widths[0], out = widths[1];
      CAPTURE(map.height);
      CAPTURE(in);
      const DType bf = DType::bf16, f64 = DType::f64;
      const Tensor x = random_tensor({2, map.height, map.width, in}, 1).to(bf),
                   weight = random_tensor({out, in, 3, 3}, 2).to(bf), bias = random_tensor({out}, 3).to(bf);
      const ConvOptions options{.stride = 1, .padding = map.padding};
      const auto y_and_dx = [&](DType dtype) {
        Tensor from = x.to(dtype);
        from.require_grad();
        Tape tape;
        const Tensor y = conv2d(from, weight.to(dtype), bias.to(dtype), options),
                     twice = y + conv2d(from, weight.to(dtype), {}, options);  // dx is added to dx
        tape.backward(twice, random_tensor(y.shape(), 4).to(bf).to(dtype));
        return std::array{y, from.grad()};
      };
      const auto [y, dx] = y_and_dx(bf);
      const auto [wanted_y, wanted_dx] = y_and_dx(f64);
      CHECK(relative_error(y, wanted_y) < 0.012);
      CHECK(relative_error(dx, wanted_dx) < 0.012);
    }
}

TEST_CASE("minimal filtering in bf16 needs whole panels, and products that are not much faster than sums") {
  const auto size = [](int64_t in, int64_t out) { return ConvSize{2, 8, 8, in, out, 3, 3, 1, 1, 8, 8}; };
  Bf16Kernels kernels{};
  CHECK_FALSE(by_winograd(kernels, size(32, 64)));
  kernels.pixels_to_points = [](const PixelSquares&) {};
  CHECK(by_winograd(kernels, size(32, 64)));
  CHECK_FALSE(by_winograd(kernels, size(16, 32)));
  CHECK_FALSE(by_winograd(kernels, size(32, 48)));
}

TEST_CASE("minimal filtering is left where there are few channels or much padding") {
  const auto size = [](int64_t side, int64_t in, int64_t out) {
    return ConvSize{2, side, side, in, out, 3, 3, 1, 1, side, side};
  };
  CHECK(by_winograd(size(2, 16, 16)));
  CHECK_FALSE(by_winograd(size(1, 16, 16)));  // 16 products instead of 9
  CHECK_FALSE(by_winograd(size(8, 3, 16)));
  CHECK_FALSE(by_winograd(size(8, 16, 24)));
  CHECK_FALSE(by_winograd({2, 8, 8, 16, 16, 3, 3, 2, 1, 4, 4}));
}

TEST_CASE("a 1 x 1 convolution is a linear map of each pixel") {
  const Tensor x = random_tensor({2, 3, 3, 4}, 1), weight = random_tensor({5, 4, 1, 1}, 2);
  const Tensor y = conv2d(x, weight, {});
  double expected = 0;
  for (int64_t c = 0; c < 4; ++c) expected += x.data<double>()[c] * weight.data<double>()[c];
  CHECK(y.shape() == Shape{2, 3, 3, 5});
  CHECK(y.data<double>()[0] == doctest::Approx(expected));
}

TEST_CASE("unfold flattens windows as (c, y, x)") {
  const Tensor x = Tensor::from({1, 10, 2, 20, 3, 30, 4, 40}, {1, 2, 2, 2});
  CHECK(unfold(x, 2, {}).values() == std::vector<double>{1, 2, 3, 4, 10, 20, 30, 40});
}

TEST_CASE("convolutions of no images give gradients of zeros, or leave those that are there") {
  const auto check_gradients = [](const auto& conv, const Shape& map, const Shape& weights, int64_t stride) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      CAPTURE(dtype);
      const Tensor x = Tensor::empty(map, dtype);
      const Tensor weight = random_tensor(weights, 1).to(dtype).require_grad(),
                   bias = random_tensor({weights[0]}, 2).to(dtype).require_grad();
      const auto backward = [&](const Tensor& from) {
        Tape tape;
        const Tensor y = conv(from, weight, bias, ConvOptions{.stride = stride, .padding = 1});
        CHECK(y.dim(0) == from.dim(0));
        tape.backward(y, Tensor::full(y.shape(), 1, dtype));
      };
      backward(x);
      CHECK(weight.grad().values() == std::vector<double>(static_cast<size_t>(weights.elements()), 0.0));
      CHECK(bias.grad().values() == std::vector<double>(static_cast<size_t>(weights[0]), 0.0));
      backward(Tensor::full(map.with(0, 1), 1, dtype));
      const std::vector<double> before = weight.grad().values();
      backward(x);
      CHECK(weight.grad().values() == before);
    }
  };
  check_gradients(conv2d, {0, 6, 5, 16}, {16, 16, 3, 3}, 1);  // minimal filtering
  check_gradients(conv2d, {0, 6, 5, 32}, {32, 32, 3, 3}, 1);  // in bf16 too
  check_gradients(conv2d, {0, 6, 5, 3}, {4, 3, 3, 3}, 2);
  check_gradients(depthwise_conv2d, {0, 6, 5, 3}, {6, 1, 3, 3}, 1);
}

TEST_CASE("convolutions name what does not fit") {
  const Tensor x = Tensor::zeros({1, 4, 4, 3});
  CHECK_THROWS_WITH_AS(
      conv2d(x, Tensor::zeros({2, 4, 3, 3}), {}),
      "conv2d: input f32 [1, 4, 4, 3] takes a weight f32 [O, 3, kh, kw] with at least one output, not "
      "f32 [2, 4, 3, 3]",
      Error);
  CHECK_THROWS_WITH_AS(conv2d(x, Tensor::zeros({0, 3, 3, 3}), {}),
                       doctest::Contains("with at least one output, not f32 [0, 3, 3, 3]"), Error);
  for (const Shape& map : {Shape{1, 0, 4, 3}, Shape{1, 4, 0, 3}, Shape{1, 4, 4, 0}})
    CHECK_THROWS_WITH_AS(conv2d(Tensor::zeros(map), Tensor::zeros({2, map[3], 3, 3}), {}, {.padding = 2}),
                         doctest::Contains("of at least one pixel and channel is wanted"), Error);
  CHECK_THROWS_WITH_AS(conv2d(x, Tensor::zeros({2, 3, 3, 3}), Tensor::zeros({3})),
                       doctest::Contains("takes a bias f32 [2], not f32 [3]"), Error);
  CHECK_THROWS_WITH_AS(conv2d(x, Tensor::zeros({2, 3, 5, 5}), {}),
                       doctest::Contains("is smaller than a window of 5 x 5"), Error);
  CHECK_THROWS_WITH_AS(conv2d(x, Tensor::zeros({2, 3, 3, 3}), {}, {.stride = 0}),
                       doctest::Contains("conv2d: stride 0 and padding 0"), Error);
  CHECK_THROWS_WITH_AS(conv2d(Tensor::zeros({4, 4, 3}), Tensor::zeros({2, 3, 3, 3}), {}),
                       doctest::Contains("conv2d: input [4, 4, 3], a map [B, H, W, C] of"), Error);
  CHECK_THROWS_WITH_AS(depthwise_conv2d(x, Tensor::zeros({4, 1, 3, 3}), {}),
                       doctest::Contains("gives 4 channels, no multiple of the"), Error);
  CHECK_THROWS_WITH_AS(unfold(Tensor::zeros({4, 4}), 3, {}),
                       doctest::Contains("unfold: input [4, 4], a map [B, H, W, C] of"), Error);
}
