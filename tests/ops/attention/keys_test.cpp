// Attention to numbers of keys and of widths that the kernels treat differently.

#include <doctest/doctest.h>

#include <cmath>
#include <iterator>
#include <span>
#include <vector>

#include "engine/check/gradient_check.h"
#include "engine/ops/attention/attention.h"

using namespace tessera;

TEST_CASE("attention to any number of keys, of any width, equals its plain twin") {
  struct Tolerance {
    DType dtype;
    double output, gradient, scale;  // The scale's gradient sums products that nearly cancel.
  };
  constexpr Tolerance tolerances[] = {
      {DType::f64, 1e-12, 1e-12, 1e-11}, {DType::f32, 2e-6, 2e-6, 1e-4}, {DType::bf16, 0.02, 0.03, 0.1}};
  constexpr int64_t widths[] = {16, 1, 64, 33, 31, 48};
  size_t which = 0;
  const auto check = [&](int64_t queries, int64_t keys, bool mask_diagonal) {
    const int64_t d = widths[which++ % std::size(widths)];
    CAPTURE(queries);
    CAPTURE(keys);
    CAPTURE(d);
    const double usual = std::sqrt(static_cast<double>(d));
    OpCase c{"attention",
             "",
             {random_tensor({2, queries, 2 * d}, 1), random_tensor({2, keys, 2 * d}, 2),
              random_tensor({2, keys, 2 * d}, 3), Tensor::from({0.7 / usual, -1.3 / usual}, {2}, DType::f64)},
             {}};
    for (Tensor& input : c.inputs) input = input.to(DType::bf16).to(DType::f64);
    using Attend = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, int64_t, const ScoreTerms&);
    const auto with = [=](Attend attend) {
      return [=](std::span<const Tensor> in) {
        return attend(in[0], in[1], in[2], 2, {.learned_scale = in[3], .mask_diagonal = mask_diagonal});
      };
    };
    const Run plain = run_case(c, with(attention_plain), DType::f64);
    for (const Tolerance& tolerance : tolerances) {
      CAPTURE(name(tolerance.dtype));
      const Run fused = run_case(c, with(attention), tolerance.dtype);
      CHECK(relative_error(fused.output, plain.output) < tolerance.output);
      for (size_t i = 0; i < plain.gradients.size(); ++i) {
        CAPTURE(i);
        CHECK(relative_error(fused.gradients[i], plain.gradients[i]) <
              (i == 3 ? tolerance.scale : tolerance.gradient));
      }
    }
  };
  for (const int64_t keys :
       {2, 3, 5, 8, 9, 15, 16, 17, 18, 31, 32, 33, 34, 48, 49, 63, 64, 65, 66, 79, 80, 81})
    for (const bool mask_diagonal : {false, true}) check(keys, keys, mask_diagonal);
  for (const int64_t queries : {1, 2, 3, 6, 97, 130})
    for (const int64_t keys : {2, 12, 33, 65, 77, 145}) check(queries, keys, false);
}

TEST_CASE("a score far above the others has all the weight, whichever key it is of") {
  for (const int64_t keys : {5, 9, 17, 33})
    for (int64_t which = 0; which < keys; ++which) {
      CAPTURE(keys);
      CAPTURE(which);
      std::vector<double> k(static_cast<size_t>(keys), -300.0), v(static_cast<size_t>(keys), 1.0);
      k[static_cast<size_t>(which)] = 300.0;
      v[static_cast<size_t>(which)] = 7.0;
      const Shape shape{1, keys, 1};
      const Tensor q = Tensor::from({1.0}, {1, 1, 1}, DType::f32);
      const Tensor y =
          attention(q, Tensor::from(k, shape, DType::f32), Tensor::from(v, shape, DType::f32), 1);
      CHECK(y.values()[0] == 7.0);
    }
}
