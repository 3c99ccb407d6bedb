#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/ops/conv.h"
#include "engine/ops/shape.h"
#include "tests/sanitized.h"

using namespace tessera;

namespace {

// The largest distance of a's numbers from `times` those of b, less so many 256ths of these.
double beyond_rounding(const Tensor& a, const Tensor& b, double times, double parts) {
  const std::vector<double> got = a.values(), wanted = b.values();
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double number = times * wanted[i];
    worst = std::max(worst, std::abs(got[i] - number) - parts * std::abs(number) / 256);
  }
  return worst;
}

}  // namespace

TEST_CASE("a depthwise convolution gives every channel filters of its own") {
  const Tensor x = Tensor::from({1, 10, 2, 20}, {1, 1, 2, 2});                 // channels last
  const Tensor weight = Tensor::from({1, 2, 3, 4, 5, 6, 7, 8}, {4, 1, 1, 2});  // two filters a channel
  const Tensor y = depthwise_conv2d(x, weight, {});
  CHECK(y.shape() == Shape{1, 1, 1, 4});
  CHECK(y.values() == std::vector<double>{1 * 1 + 2 * 2, 3 * 1 + 4 * 2, 5 * 10 + 6 * 20, 7 * 10 + 8 * 20});
}

TEST_CASE("a depthwise convolution of many channels is that of each channel alone") {
  constexpr int64_t channels = 155;  // several vectors, one, and a rest
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    CAPTURE(dtype);
    const Tensor x = random_tensor({2, 6, 5, channels}, 1).to(dtype),
                 weight = random_tensor({channels, 1, 3, 3}, 2).to(dtype),
                 bias = random_tensor({channels}, 3).to(dtype);
    const ConvOptions options{.stride = 2, .padding = 1};
    const Tensor y = depthwise_conv2d(x, weight, bias, options);
    // A sanitizer's build fuses fewer multiplications and additions, by which the last bit of a float
    // differs.
    const double most = sanitized ? 1e-6 : 0;
    for (int64_t c = 0; c < channels; ++c)
      CHECK(relative_error(depthwise_conv2d(slice(x, 3, c, 1), weight.rows(c, 1), bias.rows(c, 1), options),
                           slice(y, 3, c, 1)) <= most);
  }
}

TEST_CASE("the gradients of a depthwise convolution of many channels are those of each channel alone") {
  constexpr int64_t channels = 29;  // vectors and a rest
  for (const int64_t kernel : {1, 3, 5, 7})
    for (const int64_t stride : {1, 2, 3})
      for (const int64_t padding : {int64_t{0}, kernel / 2, kernel + 1})
        for (const int64_t filters : {1, 2, 3}) {
          CAPTURE(kernel);
          CAPTURE(stride);
          CAPTURE(padding);
          CAPTURE(filters);
          const ConvOptions options{.stride = stride, .padding = padding};
          const auto gradients = [&](const Tensor& x, const Tensor& weight, const Tensor& dy) {
            const Tensor leaf = x.clone().require_grad(), w = weight.clone().require_grad(),
                         b = Tensor::zeros({weight.dim(0)}, DType::f64).require_grad();
            Tape tape;
            tape.backward(depthwise_conv2d(leaf, w, b, options), dy);
            return std::array{leaf.grad(), w.grad(), b.grad()};
          };
          const Tensor x = random_tensor({2, 8, 11, channels}, 1),
                       weight = random_tensor({channels * filters, 1, kernel, kernel}, 2);
          const Tensor dy = random_tensor(depthwise_conv2d(x, weight, {}, options).shape(), 3);
          const auto [dx, dweight, dbias] = gradients(x, weight, dy);
          constexpr double most = 1e-11;  // sums of a few products may nearly cancel
          for (int64_t c = 0; c < channels; ++c) {
            const auto alone = gradients(slice(x, 3, c, 1), weight.rows(c * filters, filters),
                                         slice(dy, 3, c * filters, filters));
            CHECK(relative_error(slice(dx, 3, c, 1), alone[0]) < most);
            CHECK(relative_error(dweight.rows(c * filters, filters), alone[1]) < most);
            CHECK(relative_error(dbias.rows(c * filters, filters), alone[2]) < most);
          }
        }
}

TEST_CASE("a depthwise convolution in bf16 is that in double, rounded, whatever the kernel and its borders") {
  for (const int64_t kernel : {1, 3, 5, 7})
    for (const int64_t stride : {1, 2, 3})
      for (const int64_t padding : {int64_t{0}, kernel / 2, kernel + 1})
        for (const auto [channels, filters] : std::initializer_list<std::array<int64_t, 2>>{
                 {8, 1}, {32, 1}, {75, 1}, {40, 2}, {9, 4}, {5, 3}}) {
          CAPTURE(kernel);
          CAPTURE(stride);
          CAPTURE(padding);
          const Tensor x = random_tensor({2, 8, 11, channels}, 1).to(DType::bf16),
                       weight = random_tensor({channels * filters, 1, kernel, kernel}, 2).to(DType::bf16),
                       bias = random_tensor({channels * filters}, 3).to(DType::bf16);
          const ConvOptions options{stride, padding};
          const std::vector<double> y = depthwise_conv2d(x, weight, bias, options).values(),
                                    wanted = depthwise_conv2d(x.to(DType::f64), weight.to(DType::f64),
                                                              bias.to(DType::f64), options)
                                                 .values();
          double worst = 0;
          for (size_t i = 0; i < y.size(); ++i)
            worst = std::max(worst, std::abs(y[i] - wanted[i]) - std::abs(wanted[i]) / 256);
          CHECK(worst < 1e-5);
        }
}

TEST_CASE("the gradients of a depthwise convolution in bf16 are those in double, rounded, and are added") {
  for (const int64_t kernel : {3, 5, 7})
    for (const int64_t stride : {1, 2})
      for (const int64_t padding : {int64_t{0}, kernel / 2, kernel + 1})
        for (const int64_t channels : {8, 40, 75}) {
          CAPTURE(kernel);
          CAPTURE(stride);
          CAPTURE(padding);
          CAPTURE(channels);
          const ConvOptions options{stride, padding};
          const Tensor x = random_tensor({3, 7, 11, channels}, 1).to(DType::bf16),
                       weight = random_tensor({channels, 1, kernel, kernel}, 2).to(DType::bf16);
          const Tensor dy =
              random_tensor(depthwise_conv2d(x, weight, {}, options).shape(), 3).to(DType::bf16);
          const auto gradients = [&](DType dtype, int passes) {
            const Tensor leaf = x.to(dtype).clone().require_grad(),
                         w = weight.to(dtype).clone().require_grad(),
                         b = Tensor::zeros({channels}, dtype).require_grad();
            for (int i = 0; i < passes; ++i) {
              Tape tape;
              tape.backward(depthwise_conv2d(leaf, w, b, options), dy.to(dtype));
            }
            return std::array{leaf.grad(), w.grad(), b.grad()};
          };
          const auto once = gradients(DType::bf16, 1), twice = gradients(DType::bf16, 2),
                     wanted = gradients(DType::f64, 1);
          for (size_t i = 0; i < wanted.size(); ++i) {
            CHECK(beyond_rounding(once[i], wanted[i], 1, 1) < 1e-4);
            CHECK(beyond_rounding(twice[i], wanted[i], 2, 2) < 2e-4);
          }
        }
}

TEST_CASE("the gradient of a tap of a depthwise convolution is NaN only where it reads NaN") {
  const int64_t channels = 40, bad = 37;
  const Tensor x = random_tensor({1, 7, 9, channels}, 1), weight = random_tensor({channels, 1, 3, 3}, 2);
  x.data<double>()[(6 * 9 + 8) * channels + bad] = std::nan("");  // the last pixel
  const Tensor w = weight.to(DType::bf16).clone().require_grad();
  Tape tape;
  const Tensor y = depthwise_conv2d(x.to(DType::bf16), w, {}, {.padding = 1});
  tape.backward(y, Tensor::full(y.shape(), 1, DType::bf16));
  const std::vector<double> gradient = w.grad().values();
  int64_t wrong = 0;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t u = 0; u < 3; ++u)
      for (int64_t v = 0; v < 3; ++v)
        wrong +=
            std::isnan(gradient[static_cast<size_t>((c * 3 + u) * 3 + v)]) != (c == bad && u >= 1 && v >= 1);
  CHECK(wrong == 0);
}

TEST_CASE("a depthwise convolution hides no NaN and spreads it to no other window or channel") {
  const int64_t channels = 40, bad = 37;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    CAPTURE(dtype);
    const Tensor x = random_tensor({1, 6, 9, channels}, 1), weight = random_tensor({channels, 1, 3, 3}, 2);
    x.data<double>()[(2 * 9 + 8) * channels + bad] = std::nan("");
    const std::vector<double> y =
        depthwise_conv2d(x.to(dtype), weight.to(dtype), {}, {.padding = 1}).values();
    int64_t wrong = 0;
    for (int64_t i = 0; i < 6; ++i)
      for (int64_t j = 0; j < 9; ++j)
        for (int64_t c = 0; c < channels; ++c)
          wrong += std::isnan(y[static_cast<size_t>((i * 9 + j) * channels + c)]) !=
                   (c == bad && i >= 1 && i <= 3 && j >= 7);
    CHECK(wrong == 0);
  }
}
