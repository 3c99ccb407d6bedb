#include "engine/check/op_case.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/loss.h"
#include "engine/ops/reduce.h"
#include "engine/ops/softmax.h"

namespace tessera {

namespace {

using In = std::span<const Tensor>;

// -sum targets * log_softmax(x) / rows, from recorded ops.
OpCase::Function plain(const Tensor& targets, double rows) {
  return [=](In in) { return scale(sum(multiply(beside(targets, in[0]), log_softmax(in[0]))), -1 / rows); };
}

}  // namespace

OpCases loss_cases() {
  const Tensor a = Tensor::from(std::vector<int64_t>{1, 0, 3, 2, 2, 4}, {2, 3});
  const Tensor b = Tensor::from(std::vector<int64_t>{1, 2, 0, 4, 3, 3}, {2, 3});
  const Tensor holes = Tensor::from(std::vector<int64_t>{1, 255, 3, 255, 2, 4}, {2, 3});
  const Tensor x = random_tensor({2, 3, 5}, 1), soft = square(random_tensor({2, 3, 5}, 2));
  std::vector<double> one_hot(30, 0.0), mixed(30, 0.02);  // mixed: smoothing 0.1, lam 0.7
  std::vector<double> left(30, 0.0);
  for (size_t i = 0; i < 6; ++i) {
    const size_t at_a = i * 5 + static_cast<size_t>(a.integers()[i]),
                 at_b = i * 5 + static_cast<size_t>(b.integers()[i]);
    one_hot[at_a] = 1;
    if (holes.integers()[i] != 255) left[at_a] = 1;
    mixed[at_a] += 0.9 * 0.7;
    mixed[at_b] += 0.9 * 0.3;
  }
  const auto f64 = [](const std::vector<double>& t) { return Tensor::from(t, {2, 3, 5}, DType::f64); };
  return {
      {"cross_entropy",
       "labels",
       {x},
       [=](In in) { return cross_entropy(in[0], beside(a, in[0])); },
       plain(f64(one_hot), 6)},
      {"cross_entropy",
       "part of a batch",
       {x},
       [=](In in) {
         return cross_entropy(in[0], beside(a, in[0]), {0, 24});
       },
       plain(f64(one_hot), 24)},
      {"cross_entropy",
       "ignored rows",
       {x},
       [=](In in) {
         return cross_entropy(in[0], beside(holes, in[0]), {0, 0, 255});
       },
       plain(f64(left), 4)},
      {"cross_entropy",
       "mixed and smoothed",
       {x},
       [=](In in) { return cross_entropy_mixed(in[0], beside(a, in[0]), beside(b, in[0]), 0.7, {0.1}); },
       plain(f64(mixed), 6)},
      {"cross_entropy",
       "soft",
       {x},
       [=](In in) { return cross_entropy_soft(in[0], beside(soft, in[0])); },
       plain(soft, 6)},
      {"cross_entropy",
       "soft and smoothed",
       {x},
       [=](In in) { return cross_entropy_soft(in[0], beside(soft, in[0]), {0.2}); },
       plain(add_scalar(scale(soft, 0.8), 0.04), 6)},
  };
}

}  // namespace tessera
