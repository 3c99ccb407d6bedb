#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/core/random.h"
#include "tests/ops/bf16_kinds.h"

using namespace tessera;

namespace {

bf16 of_bits(uint16_t bits) {
  bf16 number;
  number.bits = bits;
  return number;
}

// All finite numbers, of both signs.
std::vector<bf16> all_numbers() {
  std::vector<bf16> numbers;
  for (uint32_t bits = 0; bits <= 0xffff; ++bits)
    if (const bf16 x = of_bits(static_cast<uint16_t>(bits)); std::isfinite(float(x))) numbers.push_back(x);
  return numbers;
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double two_root_of(double x) { return 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x); }

double value(Bf16Function f, double x) {
  switch (f) {
    case Bf16Function::identity:
      return x;
    case Bf16Function::relu:
      return std::max(0.0, x);
    case Bf16Function::gelu:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case Bf16Function::gelu_tanh:
      return x * sigmoid_of(two_root_of(x));
    case Bf16Function::silu:
      return x * sigmoid_of(x);
    case Bf16Function::sigmoid:
      return sigmoid_of(x);
  }
  return x;
}

double slope(Bf16Function f, double x) {
  const double s = sigmoid_of(f == Bf16Function::gelu_tanh ? two_root_of(x) : x);
  switch (f) {
    case Bf16Function::identity:
      return 1;
    case Bf16Function::relu:
      return x > 0 ? 1 : 0;
    case Bf16Function::gelu:
      return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    case Bf16Function::gelu_tanh:
      return s + x * s * (1 - s) * 2 * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
    case Bf16Function::silu:
      return s * (1 + x * (1 - s));
    case Bf16Function::sigmoid:
      return s * (1 - s);
  }
  return 1;
}

constexpr std::array all_functions{Bf16Function::identity,  Bf16Function::relu, Bf16Function::gelu,
                                   Bf16Function::gelu_tanh, Bf16Function::silu, Bf16Function::sigmoid};

// How far y is from `wanted`, in units of the last of bf16's eight bits. Numbers below 1e-36 are alike: there
// exp(-x) of a float overflows, and the instructions write zeros for what is not normal.
double units_off(bf16 y, double wanted) {
  const double smallest = 1e-36, size = std::max(smallest, std::abs(wanted));
  const double error = std::abs(double(float(y)) - wanted);
  return size == smallest && error <= smallest ? 0 : error / std::ldexp(1.0, std::ilogb(size) - 7);
}

std::vector<float> floats_of(const std::vector<bf16>& numbers) { return {numbers.begin(), numbers.end()}; }

}  // namespace

TEST_CASE("bf16 functions: of every number, rounded once") {
  for_every_kind([](const Bf16Kernels& kernels) {
    const std::vector<bf16> x = all_numbers();
    const std::vector<float> z = floats_of(x), one(bf16_panel, 1.0f), zero(bf16_panel, -0.0f);
    const auto n = static_cast<int64_t>(x.size());
    std::vector<bf16> activated(x.size()), normed(x.size());
    for (const Bf16Function f : all_functions) {
      CAPTURE(f);
      kernels.norm(f, n, bf16_panel, one.data(), zero.data(), x.data(), nullptr, normed.data());
      for (int64_t i = 0; i < n; i += bf16_panel)
        kernels.activate(f, 1, std::min(bf16_panel, n - i), {z.data() + i, 0}, activated.data() + i, nullptr,
                         0);
      double worst = 0;
      int64_t apart = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        worst = std::max(worst, units_off(normed[i], value(f, double(z[i]))));
        apart += normed[i].bits != activated[i].bits;
      }
      CHECK(worst <= 0.5 + 1e-3);
      CHECK(apart == 0);
    }
  });
}

TEST_CASE("bf16 functions: slopes") {
  for_every_kind([](const Bf16Kernels& kernels) {
    constexpr int64_t rows = 3, columns = 21, stride = 40;
    std::vector<float> z(static_cast<size_t>(rows * bf16_panel));
    std::vector<bf16> y(static_cast<size_t>(rows * stride)), slopes(y.size());
    Random random(1);
    for (const Bf16Function f : all_functions)
      for (const float spread : {1.0f, 8.0f, 1e4f}) {
        CAPTURE(f);
        CAPTURE(spread);
        for (float& number : z) number = spread * static_cast<float>(random.normal());
        std::fill(y.begin(), y.end(), bf16(7.0f));
        std::fill(slopes.begin(), slopes.end(), bf16(7.0f));
        kernels.activate(f, rows, columns, {z.data(), bf16_panel}, y.data(), slopes.data(), stride);
        double worst = 0, worst_slope = 0, beyond = 0;
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < stride; ++j) {
            const auto at = static_cast<size_t>(i * stride + j);
            const auto from = double(z[static_cast<size_t>(i * bf16_panel + std::min(j, columns))]);
            if (j >= columns) {
              beyond += double(float(y[at]) != 7 || float(slopes[at]) != 7);
            } else {
              worst = std::max(worst, units_off(y[at], value(f, from)));
              const double wanted = slope(f, from);
              worst_slope = std::max(worst_slope,
                                     std::abs(double(float(slopes[at])) - wanted) - std::abs(wanted) / 256);
            }
          }
        CHECK(beyond == 0);
        CHECK(worst <= 0.5 + 1e-3);
        CHECK(worst_slope < 1e-5);
      }
  });
}

TEST_CASE("bf16 functions: a norm adds its residual to the rounded sum, in place, row by row") {
  for_every_kind([](const Bf16Kernels& kernels) {
    constexpr int64_t columns = 45, n = 7 * columns;
    Random random(2);
    std::vector<bf16> x(n), residual(n);
    std::vector<float> scale(columns), shift(columns);
    for (auto* numbers : {&x, &residual})
      for (bf16& number : *numbers) number = bf16(static_cast<float>(random.normal()));
    for (auto* numbers : {&scale, &shift})
      for (float& number : *numbers) number = static_cast<float>(random.normal());
    x[50] = bf16(std::nanf(""));
    for (const Bf16Function f : all_functions) {
      CAPTURE(f);
      std::vector<bf16> y = x;
      kernels.norm(f, n, columns, scale.data(), shift.data(), y.data(), residual.data(), y.data());
      double worst = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t j = i % columns;
        const bf16 rounded(std::fma(scale[j], float(x[i]), shift[j]));
        const bf16 sum(float(rounded) + float(residual[i]));
        worst = std::max(worst, i == 50 ? double(!std::isnan(float(y[i])))
                                        : units_off(y[i], value(f, double(float(sum)))));
      }
      CHECK(worst <= 0.5 + 1e-3);
    }
  });
}

TEST_CASE("bf16 functions: infinities and NaN") {
  for_every_kind([](const Bf16Kernels& kernels) {
    const float inf = std::numeric_limits<float>::infinity();
    const std::array<float, 3> z{inf, -inf, std::nanf("")};
    for (const Bf16Function f : all_functions) {
      CAPTURE(f);
      std::array<bf16, 3> y;
      kernels.activate(f, 1, 3, {z.data(), 0}, y.data(), nullptr, 0);
      CHECK(float(y[0]) == (f == Bf16Function::sigmoid ? 1 : inf));
      if (f == Bf16Function::sigmoid || f == Bf16Function::relu) CHECK(float(y[1]) == 0);
      CHECK(std::isnan(float(y[2])));
    }
  });
}
