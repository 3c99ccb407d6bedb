// The softmax of attention's bf16 kernels, of every kind, against double.

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

using Numbers = std::vector<bf16>;

constexpr int64_t softmax_rows = 3;

std::vector<float> random_rows(int64_t columns, float spread) {
  Random random(7);
  std::vector<float> rows(static_cast<size_t>(softmax_rows * columns));
  for (float& x : rows) x = spread * static_cast<float>(random.normal());
  return rows;
}

// P = softmax(s) of a row in double.
std::vector<double> probabilities(const float* s, int64_t columns) {
  const double most = *std::max_element(s, s + columns);
  std::vector<double> p(s, s + columns);
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - most);
  for (double& x : p) x /= sum;
  return p;
}

// Rounding to bf16 moves a number by at most its 256th.
void check_rounded(bf16 number, double wanted) {
  CHECK(std::abs(double(float(number)) - wanted) <= std::abs(wanted) / 256 + 1e-6);
}

// softmax() and softmax_backward() of three rows of whole vectors against double.
void check_softmax(const Bf16Kernels& kernels, std::vector<float> s, std::vector<float> dp) {
  const int64_t columns = static_cast<int64_t>(s.size()) / softmax_rows, stride = columns + 32;
  Numbers p(static_cast<size_t>(softmax_rows * stride)), p_again = p, ds = p;
  std::array<float, softmax_rows> maxima{}, sums{}, lse{}, shares{}, means{};
  kernels.softmax(softmax_rows, columns, {s.data(), columns}, p.data(), stride, maxima.data(), sums.data());
  for (size_t r = 0; r < lse.size(); ++r) lse[r] = maxima[r] + std::log(sums[r]);
  std::vector<float> s_again = s, in_floats = dp;
  kernels.softmax_backward(softmax_rows, columns, {s_again.data(), columns}, {dp.data(), columns}, lse.data(),
                           p_again.data(), ds.data(), stride, shares.data(), means.data());
  s_again = s;
  kernels.softmax_backward(softmax_rows, columns, {s_again.data(), columns}, {in_floats.data(), columns},
                           lse.data(), p_again.data(), nullptr, stride, shares.data(), means.data());
  for (int64_t r = 0; r < softmax_rows; ++r) {
    const std::vector<double> wanted = probabilities(s.data() + r * columns, columns);
    double mean = 0;
    for (int64_t j = 0; j < columns; ++j)
      mean += wanted[static_cast<size_t>(j)] * double(dp[static_cast<size_t>(r * columns + j)]);
    for (int64_t j = 0; j < columns; ++j) {
      CAPTURE(r);
      CAPTURE(j);
      const auto at = static_cast<size_t>(r * stride + j), in_row = static_cast<size_t>(r * columns + j);
      const double probability = wanted[static_cast<size_t>(j)],
                   gradient = probability * (double(dp[in_row]) - mean);
      CHECK(s[in_row] <= maxima[static_cast<size_t>(r)]);
      check_rounded(p[at], probability * double(sums[static_cast<size_t>(r)]));
      check_rounded(p_again[at], probability);
      check_rounded(ds[at], gradient);
      CHECK(std::abs(double(in_floats[in_row]) - gradient) < 1e-5);
    }
  }
}

}  // namespace

TEST_CASE("bf16 products: attention's softmax and its backward pass agree with double") {
  for_every_kind([](const Bf16Kernels& kernels) {
    for (const int64_t columns : {16, 32, 48, 80, 208})
      for (const float spread : {1.0f, 40.0f}) {
        CAPTURE(columns);
        CAPTURE(spread);
        check_softmax(kernels, random_rows(columns, spread), random_rows(columns, 1));
      }
  });
}

TEST_CASE("bf16 products: probabilities of scores far below the largest are zeros, and NaN stays NaN") {
  for_every_kind([](const Bf16Kernels& kernels) {
    const float inf = std::numeric_limits<float>::infinity();
    std::array<float, 16> s{};
    s.fill(-inf);
    s[3] = 1e4f, s[4] = 1e4f - 105, s[5] = -1e30f, s[6] = 1e4f - 80;
    std::array<bf16, 16> p;
    float maximum = 0, sum = 0;
    kernels.softmax(1, 16, {s.data(), 16}, p.data(), 16, &maximum, &sum);
    CHECK(maximum == 1e4f);
    CHECK(sum == 1);
    for (size_t j = 0; j < p.size(); ++j) {
      CAPTURE(j);
      const double wanted = j == 3 ? 1 : j == 6 ? std::exp(-80.0) : 0;
      CHECK(std::abs(double(float(p[j])) - wanted) <= wanted / 100);
    }
    s[0] = std::nanf("");
    kernels.softmax(1, 16, {s.data(), 16}, p.data(), 16, &maximum, &sum);
    CHECK(std::isnan(sum));
  });
}
