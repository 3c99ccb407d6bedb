#include "engine/ops/matmul.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "engine/autograd/tape.h"
#include "engine/check/gemm_peak.h"
#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/cpu/bf16_gemm.h"
#include "engine/cpu/gemm.h"
#include "engine/cpu/processor.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/matmul_kernels.h"

using namespace tessera;

TEST_CASE("matmul: known products, operands stored either way") {
  const Tensor a = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3}), b = Tensor::from({1, 0, 2, -1, 0, 3}, {3, 2});
  const std::vector<double> y{5, 7, 14, 13};
  CHECK(matmul(a, b).values() == y);
  const Tensor at = Tensor::from({1, 4, 2, 5, 3, 6}, {3, 2}), bt = Tensor::from({1, 2, 0, 0, -1, 3}, {2, 3});
  CHECK(matmul(at, b, true, false).values() == y);
  CHECK(matmul(a, bt, false, true).values() == y);
  CHECK(matmul(at, bt, true, true).values() == y);
}

TEST_CASE("matmul: leading axes broadcast") {
  const Tensor a = Tensor::from({1, 2, 3, 4}, {2, 1, 1, 2}), b = Tensor::from({1, 1, 1, -1, 2, 0}, {3, 2, 1});
  const Tensor y = matmul(a, b);
  CHECK(y.shape() == Shape{2, 3, 1, 1});
  CHECK(y.values() == std::vector<double>{3, -1, 2, 7, -1, 6});
}

TEST_CASE("matmul: empty sums are zero") {
  CHECK(matmul(Tensor::empty({2, 0}), Tensor::empty({0, 3})).values() == std::vector<double>(6, 0.0));
  CHECK(matmul(Tensor::empty({0, 2}), Tensor::empty({2, 3})).shape() == Shape{0, 3});
  const Tensor a = Tensor::from({1, 2}, {1, 2}).require_grad();
  Tape tape;
  tape.backward(matmul(a, Tensor::empty({0, 2, 3})), Tensor::empty({0, 1, 3}));
  CHECK(a.grad().values() == std::vector<double>{0, 0});
}

TEST_CASE("matmul: a dry run takes as much memory as the product does") {
  const auto peak_of = [](bool dry, const Shape& a, const Shape& b) {
    const size_t before = memory_stats(Device::cpu).in_use;
    reset_peak(Device::cpu);
    std::optional<DryRun> no_kernels;
    if (dry) no_kernels.emplace();
    const Tensor x = Tensor::zeros(a), w = Tensor::zeros(b).require_grad();
    Tape tape;
    const Tensor y = matmul(x, w);
    tape.backward(y, Tensor::zeros(y.shape()));
    return memory_stats(Device::cpu).peak - before;
  };
  for (const auto& [a, b] : {std::pair{Shape{64, 64, 512}, Shape{512, 512}},
                             {Shape{64, 4096}, Shape{4096, 64}},
                             {Shape{40, 8, 8}, Shape{40, 8, 8}}})
    CHECK(peak_of(true, a, b) == peak_of(false, a, b));
}

TEST_CASE("matmul: the operand that wants no gradient costs none, and the other's is right") {
  const Tensor a = Tensor::from({1, 2}, {1, 2}).require_grad(), b = Tensor::from({3, 4}, {2, 1});
  Tape tape;
  tape.backward(matmul(a, b));
  CHECK(a.grad().values() == std::vector<double>{3, 4});
  CHECK(!b.grad().defined());
}

TEST_CASE("matmul: errors name both shapes") {
  const auto fails_with = [](const char* text, auto&&... arguments) {
    CHECK_THROWS_WITH_AS(matmul(arguments...), text, Error);
  };
  fails_with("matmul: [2, 3] has 3 columns, [4, 5] has 4 rows", Tensor::empty({2, 3}), Tensor::empty({4, 5}));
  fails_with("matmul: [2, 3] transposed has 2 columns, [3, 5] transposed has 5 rows", Tensor::empty({2, 3}),
             Tensor::empty({3, 5}), true, true);
  fails_with("matmul: [3] and [3, 5] are not both matrices", Tensor::empty({3}), Tensor::empty({3, 5}));
  fails_with("matmul: [2] and [3] do not broadcast: 2 against 3", Tensor::empty({2, 4, 5}),
             Tensor::empty({3, 5, 6}));
  fails_with("matmul: f32 [2, 3] and f64 [3, 2]; convert one with cast()", Tensor::empty({2, 3}),
             Tensor::empty({3, 2}, DType::f64));
}

namespace {

// C = 2 op(A) op(B) + C in double, element by element.
template <class T>
std::vector<double> by_hand(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const Tensor& a,
                            const Tensor& b, const Tensor& c) {
  std::vector<double> y = c.values();
  const T *x = a.data<T>(), *w = b.data<T>();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t p = 0; p < k; ++p)
        y[static_cast<size_t>(i * n + j)] += 2.0 * double(Wide<T>(x[trans_a ? p * m + i : i * k + p])) *
                                             double(Wide<T>(w[trans_b ? j * k + p : p * n + j]));
  return y;
}

template <class T> void check_gemm(int64_t m, int64_t n, int64_t k, double tolerance) {
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true}) {
      const Tensor a = random_tensor({m, k}, 1).to(dtype_of<T>), b = random_tensor({k, n}, 2).to(dtype_of<T>);
      const Tensor c = random_tensor({m, n}, 3).to(dtype_of<T>), one = c.clone(), many = c.clone();
      const Tensor expected =
          Tensor::from(by_hand<T>(trans_a, trans_b, m, n, k, a, b, c), {m, n}, DType::f64);
      const Factor<T> left{a.data<T>(), trans_a ? m : k, trans_a},
          right{b.data<T>(), trans_b ? k : n, trans_b};
      gemm<T>({m, n, k}, Wide<T>(2), left, right, Wide<T>(1), one.data<T>(), n);
      parallel_gemm<T>({m, n, k}, Wide<T>(2), left, right, Wide<T>(1), many.data<T>(), n);
      CAPTURE(name(dtype_of<T>));
      CAPTURE(m);
      CAPTURE(trans_a);
      CAPTURE(trans_b);
      CHECK(relative_error(one.to(DType::f64), expected) < tolerance);
      CHECK(relative_error(many.to(DType::f64), expected) < tolerance);
    }
}

// Checks the second of three products of a batch, once written over NaNs and once added to numbers.
template <class T> void check_batch(int64_t m, int64_t n, int64_t k, double tolerance) {
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true}) {
      const Tensor a = random_tensor({3, m, k}, 1).to(dtype_of<T>),
                   b = random_tensor({3, k, n}, 2).to(dtype_of<T>),
                   before = random_tensor({3, m, n}, 3).to(dtype_of<T>);
      const Tensor twice = scale(a, 2);
      const auto middle = [](const Tensor& x) { return x.rows(1, 1).reshape({x.dim(1), x.dim(2)}); };
      for (const bool add : {false, true}) {
        const Tensor c = before.clone(), start = middle(before).clone();
        if (!add) c.fill(std::nan("")), start.fill(0);
        MatmulKernels<Cpu>::multiply<T>({3, m, n, k, trans_a, trans_b, m * k, k * n, m * n}, twice.data<T>(),
                                        b.data<T>(), {c.data<T>(), add});
        const Tensor expected = Tensor::from(
            by_hand<T>(trans_a, trans_b, m, n, k, middle(a), middle(b), start), {m, n}, DType::f64);
        CAPTURE(name(dtype_of<T>));
        CAPTURE(m);
        CAPTURE(trans_a);
        CAPTURE(trans_b);
        CAPTURE(add);
        CHECK(relative_error(middle(c).to(DType::f64), expected) < tolerance);
      }
    }
}

// Checks the sum of a batch of products, once written over NaNs and once added to numbers.
template <class T> void check_sum(int64_t count, int64_t m, int64_t n, int64_t k, double tolerance) {
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true})
      for (const bool add : {false, true}) {
        const Tensor a = random_tensor({count, m, k}, 1).to(dtype_of<T>),
                     b = random_tensor({count, k, n}, 2).to(dtype_of<T>),
                     c = random_tensor({m, n}, 3).to(dtype_of<T>);
        if (!add) c.fill(0);
        std::vector<double> expected = c.values();
        for (int64_t i = 0; i < count; ++i) {
          const auto matrix = [i](const Tensor& x) { return x.rows(i, 1).reshape({x.dim(1), x.dim(2)}); };
          expected = by_hand<T>(trans_a, trans_b, m, n, k, scale(matrix(a), 0.5), matrix(b),
                                Tensor::from(expected, {m, n}, DType::f64));
        }
        if (!add) c.fill(std::nan(""));
        MatmulKernels<Cpu>::multiply<T>({count, m, n, k, trans_a, trans_b, m * k, k * n, 0}, a.data<T>(),
                                        b.data<T>(), {c.data<T>(), add});
        CAPTURE(name(dtype_of<T>));
        CAPTURE(count);
        CAPTURE(trans_a);
        CAPTURE(trans_b);
        CAPTURE(add);
        CHECK(relative_error(c.to(DType::f64), Tensor::from(expected, {m, n}, DType::f64)) < tolerance);
      }
}

}  // namespace

TEST_CASE("the sum of a batch of products: in one group, in several, of large ones") {
  for (const auto [count, m, n, k] :
       {std::array<int64_t, 4>{2, 3, 5, 7}, {30, 4, 4, 4096}, {7, 65, 33, 129}, {2, 520, 400, 330}}) {
    check_sum<float>(count, m, n, k, 1e-5);
    check_sum<double>(count, m, n, k, 1e-13);
    check_sum<bf16>(count, m, n, k, 0.004);
  }
}

TEST_CASE("a sum of products in bf16 is rounded once") {
  const std::vector<bf16> ones(300, bf16(1.0f));
  bf16 sum(0.0f);  // in steps of bf16 it would stay at 256
  MatmulKernels<Cpu>::multiply<bf16>({300, 1, 1, 1, false, true, 1, 1, 0}, ones.data(), ones.data(),
                                     {&sum, false});
  CHECK(float(sum) == 300);
}

TEST_CASE("a batch of products: factors that are packed, that are not, whole vectors and a rest") {
  for (const auto [m, n, k] :
       {std::array<int64_t, 3>{4, 192, 5}, {64, 48, 64}, {20, 80, 70}, {65, 65, 16}, {1, 1, 1}}) {
    check_batch<float>(m, n, k, 1e-5);
    check_batch<double>(m, n, k, 1e-13);
    check_batch<bf16>(m, n, k, 0.01);
  }
}

TEST_CASE("gemm, parallel_gemm: every transposition, cut along each side") {
  for (const auto [m, n, k] :
       {std::array<int64_t, 3>{3, 5, 7}, {700, 40, 90}, {40, 700, 90}, {40, 90, 1100}}) {
    check_gemm<float>(m, n, k, 1e-5);
    check_gemm<double>(m, n, k, 1e-13);
    check_gemm<bf16>(m, n, k, 0.01);
  }
}

TEST_CASE("gemm: bf16 into floats keeps the floats' digits") {
  const bf16 a[]{bf16(1.0f), bf16(0.00390625f)}, b[]{bf16(1.0f), bf16(1.0f)};
  float c = 0;
  gemm<bf16>({1, 1, 2}, 1.0f, {a, 2}, {b, 1}, 0.0f, &c, 1);
  CHECK(c == 1.00390625f);
}

TEST_CASE("the GEMM peak is measured and its kernels have a name") {
  const std::string kernels = blas_kernels();  // loaded, it has the kernels that its environment names
  const char* core = std::getenv("OPENBLAS_CORETYPE");
  // On a processor without kernels of its own the name may be one of another kind, which OpenBLAS ignores.
  const bool known = processor() != Processor::any;
  CHECK(kernels.starts_with(core && known ? "OpenBLAS " + std::string(core) : "OpenBLAS "));
  CHECK((core != nullptr || !known));
  CHECK(measure_gemm_peak(DType::f32) > 0.1);
  CHECK((bf16_speed() > 0) == (bf16_kernels() != nullptr));
}
