#include "engine/ops/attention/decay.h"

#include "engine/check/op_case.h"
#include "engine/ops/attention/mask.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

Tensor plain_decay(const Tensor& gates, Grid grid, int64_t prefix, double alpha, bool use_distance) {
  const int64_t images = gates.dim(0), n = gates.dim(1), heads = gates.dim(2);
  const Tensor g = permute(gates, {0, 2, 1});
  const Tensor pairs = add(g.reshape({images, heads, n, 1}), g.reshape({images, heads, 1, n}));
  const Tensor d = distances(grid, prefix, use_distance, gates.dtype());
  return scale(absolute(multiply(scale(pairs, alpha / 2), d)), -1);
}

void append_decay(OpCases& cases) {
  struct Decay {
    const char* variant;
    int64_t prefix;
    double alpha;
    bool use_distance;
  };
  const Grid grid{2, 3};
  for (const Decay& decay :
       {Decay{"", 0, 1, true}, Decay{"after a class token", 1, 0.7, true},
        Decay{"negative alpha", 0, -0.7, true}, Decay{"without distance", 1, 1, false}}) {
    const auto function = [=](std::span<const Tensor> in) {
      return content_decay(in[0], grid, decay.prefix, decay.alpha, decay.use_distance);
    };
    const auto plain = [=](std::span<const Tensor> in) {
      return plain_decay(in[0], grid, decay.prefix, decay.alpha, decay.use_distance);
    };
    const Tensor gates = random_gates({2, decay.prefix + 6, 3}, 8);
    cases.push_back({"content_decay", decay.variant, {gates}, function, plain});
  }
}

// x with `value` on the diagonal.
Tensor plain_mask(const Tensor& x, double value) {
  const int64_t n = x.dim(-1);
  Tensor diagonal = Tensor::zeros({n, n}, DType::f64);
  for (int64_t i = 0; i < n; ++i) diagonal.data<double>()[i * n + i] = 1;
  const Tensor on = beside(diagonal, x);
  return x * add_scalar(scale(on, -1), 1) + value * on;
}

}  // namespace

// The score terms that are ops of their own.
OpCases decay_cases() {
  OpCases cases;
  append_decay(cases);
  cases.push_back({"mask_diagonal",
                   "",
                   {random_tensor({2, 3, 5, 5}, 11)},
                   [](std::span<const Tensor> in) { return mask_diagonal(in[0], -2); },
                   [](std::span<const Tensor> in) { return plain_mask(in[0], -2); }});
  return cases;
}

}  // namespace tessera
