#include "engine/ops/batch_norm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/core/error.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"

using namespace tessera;

TEST_CASE("training norms by the batch and moves the running statistics, the variance unbiased") {
  const Tensor x = Tensor::from({1, 3, 5, 7}, {4, 1}, DType::f64);
  const Tensor one = Tensor::full({1}, 1, DType::f64), zero = Tensor::zeros({1}, DType::f64);
  const Tensor mean = Tensor::full({1}, 10, DType::f64), var = Tensor::full({1}, 2, DType::f64);
  const Tensor y = batch_norm(x, one, zero, mean, var, {.training = true, .momentum = 0.1, .eps = 0});
  CHECK(y.values()[0] == doctest::Approx(-3 / std::sqrt(5.0)));
  CHECK(mean.item() == doctest::Approx(0.9 * 10 + 0.1 * 4));
  CHECK(var.item() == doctest::Approx(0.9 * 2 + 0.1 * 20.0 / 3));
}

TEST_CASE("the variance is right where the mean is large, and where the first rows lie far from the others") {
  constexpr int64_t rows = 6400;
  std::vector<double> values;
  for (int64_t i = 0; i < rows; ++i) values.push_back(1000 + 0.01 * static_cast<double>(i % 7 - 3));
  for (int64_t i = 0; i < 100; ++i) values[static_cast<size_t>(i)] += 50;
  double expected_mean = 0, expected_variance = 0;
  for (const double value : values) expected_mean += value / rows;
  for (const double value : values)
    expected_variance += (value - expected_mean) * (value - expected_mean) / rows;
  const Tensor x = Tensor::from(values, {rows, 1}, DType::f32), zero = Tensor::zeros({1});
  const Tensor mean = Tensor::zeros({1}), var = Tensor::zeros({1});
  batch_norm(x, Tensor::full({1}, 1), zero, mean, var, {.training = true, .momentum = 1});
  CHECK(mean.item() == doctest::Approx(expected_mean).epsilon(1e-7));
  CHECK(var.item() == doctest::Approx(expected_variance * rows / (rows - 1)).epsilon(1e-4));
}

TEST_CASE("evaluation norms by the running statistics and leaves them") {
  const Tensor x = Tensor::from({1, 3}, {2, 1});
  const Tensor mean = Tensor::full({1}, 1), var = Tensor::full({1}, 4);
  const Tensor y = batch_norm(x, Tensor::full({1}, 2), Tensor::full({1}, 5), mean, var, {.eps = 0});
  CHECK(y.values() == std::vector<double>{5, 7});
  CHECK(mean.item() == 1);
  CHECK(var.item() == 4);
}

// Two rows lie one deviation from their mean, so that all terms of dx cancel but for eps.
TEST_CASE("the gradients of two rows in float are those in double") {
  for (const bool residual : {false, true}) {
    CAPTURE(residual);
    const auto gradients = [&](DType dtype) {
      const auto leaf = [&](const Shape& shape, uint64_t seed) {
        return random_tensor(shape, seed).to(DType::f32).to(dtype).require_grad();
      };
      const Tensor x = leaf({2, 7}, 1), weight = leaf({7}, 2), bias = leaf({7}, 3), r = leaf({2, 7}, 4),
                   dy = leaf({2, 7}, 5);
      const Tensor mean = Tensor::zeros({7}, dtype), var = Tensor::zeros({7}, dtype);
      Tape tape;
      tape.backward(batch_norm(x, weight, bias, mean, var, {.training = true, .f = Activation::silu},
                               residual ? r : Tensor()),
                    dy.detach());
      std::vector<Tensor> all{x.grad(), weight.grad(), bias.grad()};
      if (residual) all.push_back(r.grad());
      return all;
    };
    const auto narrow = gradients(DType::f32), wide = gradients(DType::f64);
    for (size_t i = 0; i < wide.size(); ++i) {
      CAPTURE(i);
      CHECK(relative_error(narrow[i].to(DType::f64), wide[i]) < 1e-5);
    }
  }
}

TEST_CASE("batch norm names what does not fit") {
  const Tensor x = Tensor::zeros({2, 3}), c = Tensor::zeros({3});
  CHECK_THROWS_WITH_AS(batch_norm(x, Tensor::zeros({2}), c, c, c, {}),
                       doctest::Contains("takes weight f32 [3], not f32 [2]"), Error);
  CHECK_THROWS_WITH_AS(batch_norm(Tensor::zeros({1, 3}), c, c, c, c, {.training = true}),
                       doctest::Contains("batch_norm: input [1, 3] has one row a channel"), Error);
  CHECK_THROWS_WITH_AS(batch_norm(x, c, c, c, c, {}, Tensor::zeros({3, 2})),
                       doctest::Contains("input f32 [2, 3] takes a residual like it, not f32 [3, 2]"), Error);
}

namespace {

// A batch norm with a residual, in one pass or as ops of their own, under a loss whose dy is random.
struct Residual {
  Tensor x, residual, weight, bias;
  Activation f = Activation::relu;

  Tensor loss(bool in_pass) const {
    const int64_t width = x.dim(-1);
    const Tensor mean = Tensor::zeros({width}, wide(x.dtype())),
                 var = Tensor::full({width}, 1, wide(x.dtype()));
    const auto norm = [&](Activation own, const Tensor& added) {
      return batch_norm(x, weight, bias, mean, var, {.training = true, .f = own}, added);
    };
    const Tensor y = in_pass ? norm(f, residual) : activation(f, add(norm(Activation::none, {}), residual));
    return sum(multiply(y, random_tensor(y.shape(), 9).to(x.dtype())));
  }

  // The gradients of x, residual, weight and bias.
  std::vector<std::vector<double>> gradients(bool in_pass, bool used_again = false) const {
    Tape tape;
    Tensor total = loss(in_pass);
    if (used_again) total = add(total, sum(square(residual)));
    tape.backward(total);
    std::vector<std::vector<double>> all;
    for (const Tensor& t : {x, residual, weight, bias}) {
      all.push_back(t.grad().defined() ? t.grad().values() : std::vector<double>{});
      t.zero_grad();
    }
    return all;
  }
};

Residual residual_of(const Shape& shape, DType dtype) {
  const auto some = [&](const Shape& its, uint64_t seed) {
    return random_tensor(its, seed).to(dtype).require_grad();
  };
  return {some(shape, 1), some(shape, 2), some({shape[-1]}, 3), some({shape[-1]}, 4)};
}

}  // namespace

TEST_CASE("a batch norm with a residual has the bits of its ops one after the other, backwards too") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const Shape& shape : {Shape{3, 5, 7, 4}, Shape{70, 300}, Shape{2048, 16}})
      for (const Activation f : {Activation::none, Activation::relu, Activation::silu}) {
        CAPTURE(dtype);
        CAPTURE(shape);
        CAPTURE(name(f));
        Residual of = residual_of(shape, dtype);
        of.f = f;
        CHECK(of.loss(true).item() == of.loss(false).item());
        CHECK(of.gradients(true) == of.gradients(false));
      }
}

TEST_CASE("a batch norm's residual may be read elsewhere, be the input itself, or want no gradient") {
  Residual of = residual_of({3, 5, 7, 4}, DType::f64);
  CHECK(of.gradients(true, true) == of.gradients(false, true));
  of.residual = of.x;
  const auto together = of.gradients(true), apart = of.gradients(false);
  for (size_t i = 0; i < together[0].size(); ++i) CHECK(together[0][i] == doctest::Approx(apart[0][i]));
  of.residual = random_tensor({3, 5, 7, 4}, 2);
  CHECK(of.gradients(true) == of.gradients(false));
}
