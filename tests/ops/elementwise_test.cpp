#include "engine/ops/elementwise.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "engine/ops/reduce.h"

using namespace tessera;

TEST_CASE("elementwise: values") {
  const Tensor a = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3}), b = Tensor::from({2, 4, 8}, {3});
  const Tensor column = Tensor::from({10, 20}, {2, 1});
  using Values = std::vector<double>;
  CHECK((a + b).values() == Values{3, 6, 11, 6, 9, 14});
  CHECK((a - b).values() == Values{-1, -2, -5, 2, 1, -2});
  CHECK((a * column).values() == Values{10, 20, 30, 80, 100, 120});
  CHECK((a / b).values() == Values{0.5, 0.5, 0.375, 2, 1.25, 0.75});
  CHECK((column + b).values() == Values{12, 14, 18, 22, 24, 28});
  CHECK((2 * b - 1).values() == Values{3, 7, 15});
  CHECK((-b / 2.0 + 1).values() == Values{0, -1, -3});
  CHECK(square(b).values() == Values{4, 16, 64});
  CHECK(sqrt(square(b)).values() == b.values());
  CHECK(absolute(Tensor::from({-2, 0, 3}, {3})).values() == Values{2, 0, 3});
  CHECK(at_most(Tensor::from({-2, 0.5, 3, std::nan("")}, {4}), 0.5).values() == Values{1, 1, 0, 0});
  CHECK(exp(Tensor::from({0}, {})).item() == 1);
  CHECK(log(Tensor::from({1}, {})).item() == 0);
  CHECK((Tensor::empty({0, 3}) + b).shape() == Shape{0, 3});
  CHECK((a.to(DType::bf16) + b.to(DType::bf16)).dtype() == DType::bf16);
}

TEST_CASE("elementwise: another type, there and back") {
  const Tensor x = Tensor::from({1 + 1.0 / 512, -3}, {2}).require_grad();
  Tape tape;
  const Tensor y = cast(x, DType::bf16);
  CHECK(y.dtype() == DType::bf16);
  CHECK(y.values() == std::vector<double>{1, -3});
  tape.backward(y, Tensor::from({0.5, 2}, {2}, DType::bf16));
  CHECK(x.grad().dtype() == DType::f32);
  CHECK(x.grad().values() == std::vector<double>{0.5, 2});
  CHECK(cast(x, DType::f32).raw() == x.raw());
  CHECK_THROWS_WITH_AS(cast(x, DType::i64), "cast: f32 [2] to i64; floating types are wanted", Error);
}

TEST_CASE("elementwise: many elements, each in its place") {
  const Tensor a = random_tensor({67, 1, 501}, 1), b = random_tensor({5, 1}, 2);
  const std::vector<double> x = a.values(), y = b.values(), z = multiply(a, b).values();
  bool same = z.size() == 67 * 5 * 501;
  for (size_t i = 0; same && i < z.size(); ++i) same = z[i] == x[i / 2505 * 501 + i % 501] * y[i / 501 % 5];
  CHECK(same);
}

TEST_CASE("elementwise: a tensor used twice") {
  const Tensor x = Tensor::from({3}, {1}, DType::f64).require_grad();
  Tape tape;
  tape.backward((x + x) * (x - x / x));  // 2x (x - 1)
  CHECK(x.grad().item() == doctest::Approx(10).epsilon(1e-12));
}

TEST_CASE("elementwise: a residual leaves the gradients of both ways apart") {
  const Tensor x = Tensor::from({1, 2}, {2}).require_grad();
  Tape tape;
  const Tensor y = scale(x, 1), z = y + scale(y, 3);
  tape.keep(y);
  tape.backward(sum(z));
  CHECK(x.grad().values() == std::vector<double>{4, 4});
  CHECK(tape.gradient(y).values() == std::vector<double>{4, 4});
}

TEST_CASE("elementwise: errors") {
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({2}), d = Tensor::zeros({2, 3}, DType::f64);
  const Tensor labels = Tensor::zeros({2}, DType::i64);
  CHECK_THROWS_WITH_AS(add(a, b), "add: [2, 3] and [2] do not broadcast: 3 against 2", Error);
  CHECK_THROWS_WITH_AS(multiply(a, d), "multiply: f32 [2, 3] and f64 [2, 3]; convert one with cast()", Error);
  CHECK_THROWS_WITH_AS(divide(labels, labels), "divide: i64 [2] is not floating", Error);
  CHECK_THROWS_WITH_AS(exp(labels), "exp: i64 [2] is not floating; convert it with to(DType::f32)", Error);
}
