#include "engine/cpu/bf16_gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "engine/core/random.h"
#include "engine/core/tensor.h"
#include "engine/ops/matmul.h"
#include "tests/ops/bf16_kinds.h"

using namespace tessera;

namespace {

using Numbers = std::vector<bf16>;

Numbers random_numbers(int64_t n, uint64_t seed) {
  Random random(seed);
  Numbers numbers(static_cast<size_t>(n));
  for (bf16& x : numbers) x = bf16(static_cast<float>(random.normal()));
  return numbers;
}

Numbers turned(const Numbers& x, int64_t rows, int64_t columns) {
  Numbers result(x.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result[static_cast<size_t>(j * rows + i)] = x[static_cast<size_t>(i * columns + j)];
  return result;
}

// The left halves of all rows of a matrix [m, depth], then the right halves.
Numbers in_halves(const Numbers& a, int64_t m, int64_t depth) {
  Numbers result;
  for (const int64_t half : {0, 1})
    for (int64_t i = 0; i < m; ++i)
      for (int64_t k = 0; k < depth / 2; ++k)
        result.push_back(a[static_cast<size_t>(i * depth + half * (depth / 2) + k)]);
  return result;
}

// a b in double. a [m, depth], b [depth, n]
std::vector<double> expected(int64_t m, int64_t n, int64_t depth, const Numbers& a, const Numbers& b) {
  std::vector<double> c;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += double(float(a[static_cast<size_t>(i * depth + k)])) *
               double(float(b[static_cast<size_t>(k * n + j)]));
      c.push_back(sum);
    }
  return c;
}

// Small numbers plus alpha times the product c [m, n] of factors of `pairs` pairs. right [pairs, columns, 2]
void check_product(const Bf16Kernels& kernels, int64_t m, int64_t n, int64_t pairs, const LeftPairs& left,
                   const Numbers& right, float alpha, const std::vector<double>& c) {
  const int64_t columns = whole_bf16_vectors(n);
  std::vector<float> product(static_cast<size_t>(m * columns));
  for (size_t i = 0; i < product.size(); ++i) product[i] = static_cast<float>(i % 7);
  const std::vector<float> start = product;
  const FloatTarget to{product.data(), columns};
  kernels.multiply(m, columns, pairs, left, {right.data(), 2 * columns}, alpha, to, to);
  double error = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<size_t>(i * columns + j);
      const double wanted = double(start[at]) + double(alpha) * c[static_cast<size_t>(i * n + j)];
      error = std::max(error, std::abs(wanted - double(product[at])));
    }
  CAPTURE(alpha);
  CHECK(error < 1e-5 * std::sqrt(static_cast<double>(2 * pairs)));
}

// Every way to lay out the factors, of one size, within float's rounding of the product in double.
void check_products(const Bf16Kernels& kernels, int64_t m, int64_t n, int64_t depth) {
  const Numbers a = random_numbers(m * depth, 1), b = random_numbers(depth * n, 2);
  const Numbers a_turned = turned(a, m, depth), b_turned = turned(b, depth, n);
  const std::vector<double> c = expected(m, n, depth, a, b);
  const int64_t columns = whole_bf16_vectors(n), pairs = pairs_of(depth);
  const bf16 poison(std::nanf(""));
  Numbers left_memory(static_cast<size_t>(left_elements(depth, m)), poison);
  std::vector<LeftPairs> lefts{kernels.left_of_transposed(depth, m, a_turned.data(), m, left_memory.data())};
  if (depth % 2 == 0) lefts.push_back({a.data(), depth, 2});
  const Numbers parts = in_halves(a, m, depth);
  if (depth % 4 == 0) lefts.push_back({parts.data(), depth / 2, 2, 2, m * depth / 2});
  for (const bool transposed : {false, true})
    for (const LeftPairs& left : lefts) {
      Numbers right(static_cast<size_t>(pairs * columns * 2), poison);
      const auto pack = transposed ? kernels.interleave_transposed : kernels.interleave;
      pack(depth, n, (transposed ? b_turned : b).data(), transposed ? depth : n, right.data(), 2 * columns);
      CAPTURE(transposed);
      CAPTURE(left.pair);
      CAPTURE(left.parts);
      for (const float alpha : {0.5f, 1.0f}) check_product(kernels, m, n, pairs, left, right, alpha, c);
    }
}

// A product [m, columns], in rows 35 numbers apart, is the one in floats, rounded; what lies between the rows
// stays.
void check_rounded_product(const Bf16Kernels& kernels, int64_t m, int64_t columns, int64_t pairs,
                           const float* start) {
  constexpr int64_t stride = 35;
  const Numbers left = random_numbers(m * 2 * pairs, 1), right = random_numbers(pairs * 2 * bf16_panel, 2);
  std::vector<float> product(static_cast<size_t>(m * columns));
  Numbers rounded(static_cast<size_t>(m * stride), bf16(2.0f));
  const LeftPairs a{left.data(), 2 * pairs, 2};
  const RightPairs b{right.data(), 2 * bf16_panel};
  kernels.multiply(m, columns, pairs, a, b, 1, {start, 0}, {product.data(), columns});
  kernels.multiply_rounded(m, columns, pairs, a, b, {start, 0}, rounded.data(), stride);
  int64_t wrong = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < stride; ++j) {
      const bf16 wanted(j < columns ? product[static_cast<size_t>(i * columns + j)] : 2.0f);
      wrong += rounded[static_cast<size_t>(i * stride + j)].bits != wanted.bits;
    }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("bf16 products: every kind agrees with double") {
  for_every_kind([](const Bf16Kernels& kernels) {
    for (const int64_t m : {1, 12, 16, 33, 50})
      for (const int64_t n : {1, 16, 20, 32, 75, 112})
        for (const int64_t depth : {1, 2, 7, 16, 32, 65, 96, 100, 128}) {
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(depth);
          check_products(kernels, m, n, depth);
        }
  });
}

TEST_CASE("bf16 products: the bits of a row depend on no row beside it") {
  for_every_kind([](const Bf16Kernels& kernels) {
    constexpr int64_t m = 53, pairs = 41, columns = bf16_panel;
    const Numbers left = random_numbers(m * 2 * pairs, 1), right = random_numbers(pairs * 2 * columns, 2);
    const std::vector<float> start(columns, 0.3f);
    const auto product = [&](int64_t first, int64_t rows) {
      std::vector<float> c(static_cast<size_t>(rows * columns));
      kernels.multiply(rows, columns, pairs, {left.data() + first * 2 * pairs, 2 * pairs, 2},
                       {right.data(), 2 * columns}, 0.7f, {start.data(), 0}, {c.data(), columns});
      return c;
    };
    const std::vector<float> all = product(0, m);
    for (const int64_t rows : {1, 5, 12, 16, 23, 48})
      for (int64_t first = 0; first + rows <= m; first += 5) {
        CAPTURE(first);
        CAPTURE(rows);
        const std::vector<float> some = product(first, rows);
        CHECK(std::equal(some.begin(), some.end(), all.begin() + first * columns));
      }
  });
}

TEST_CASE("bf16 products: rows are stored times their factor, rounded once") {
  const std::array<float, 40> from = [] {
    std::array<float, 40> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = 1 + 0.001f * static_cast<float>(i * i);
    return numbers;
  }();
  const std::array<float, 2> factors{3, -0.5f};
  for_every_kind([&](const Bf16Kernels& kernels) {
    for (const bool add : {false, true}) {
      std::array<bf16, 44> to;
      to.fill(bf16(2.0f));
      kernels.store(2, 19, {from.data(), 20}, factors.data(), 1, add, to.data(), 22);
      for (size_t i = 0; i < 2; ++i)
        for (size_t j = 0; j < 22; ++j) {
          CAPTURE(j);
          const float stored = j < 19 ? factors[i] * from[i * 20 + j] + (add ? 2.0f : 0.0f) : 2.0f;
          CHECK(to[i * 22 + j].bits == bf16(stored).bits);  // no number beyond the columns
        }
    }
  });
}

TEST_CASE("bf16 products: one that is rounded before it is stored is the stored one, rounded") {
  const std::vector<float> start(bf16_panel, 0.3f);
  for_every_kind([&](const Bf16Kernels& kernels) {
    for (const int64_t m : {1, 11, 12, 24, 41, 64})
      for (const int64_t columns : {bf16_lanes, bf16_panel})
        for (const int64_t pairs : {9, 16, 48, 53})
          for (const float* from : {static_cast<const float*>(nullptr), start.data()}) {
            CAPTURE(m);
            CAPTURE(columns);
            CAPTURE(pairs);
            check_rounded_product(kernels, m, columns, pairs, from);
          }
  });
}

TEST_CASE("bf16 products: the best kind is taken") {
  const Bf16Kernels* kernels = bf16_kernels();
  if (emulates_bf16()) {  // which the engine is given too
    const int64_t before = emulated_kernels_given();
    const Tensor x = Tensor::full({2, 4, 64}, 1, DType::bf16);
    matmul(x, x, false, true);
    CHECK(emulated_kernels_given() > before);
    return;
  }
  const Processor kind = processor();
  CHECK((kernels != nullptr) == (kind >= Processor::avx512_bf16));
  if (kernels) CHECK(std::string(kernels->name) == (kind == Processor::amx ? "AMX-BF16" : "AVX-512-BF16"));
}
