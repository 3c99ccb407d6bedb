#include "engine/ops/batch_norm.h"

#include <cmath>
#include <string>

#include "engine/check/op_case.h"
#include "engine/ops/activations.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"

namespace tessera {

namespace {

using In = std::span<const Tensor>;

Tensor running_mean(int64_t width) { return random_tensor({width}, 4); }
Tensor running_variance(int64_t width) {
  Tensor variance = random_tensor({width}, 5);
  for (int64_t i = 0; i < width; ++i) variance.data<double>()[i] = 1 + std::abs(variance.data<double>()[i]);
  return variance;
}

Tensor plain(In in, bool training, Activation f) {
  const Tensor& x = in[0];
  const int64_t width = x.dim(-1);
  const Tensor rows = x.reshape({-1, width});
  const Tensor centre = training ? mean(rows, {0}) : beside(running_mean(width), x);
  const Tensor variance = training ? mean(square(rows - centre), {0}) : beside(running_variance(width), x);
  const Tensor z = (x - centre) / sqrt(variance + BatchNormOptions{}.eps) * in[1] + in[2];
  return activation(f, in.size() > 3 ? z + in[3] : z);
}

OpCase norm(std::string variant, bool training, const Shape& x, Activation f = Activation::none,
            bool residual = false) {
  const int64_t width = x[-1];
  std::vector<Tensor> inputs{random_tensor(x, 1), random_tensor({width}, 2), random_tensor({width}, 3)};
  if (residual) inputs.push_back(random_tensor(x, 6));
  return {"batch_norm", std::move(variant), std::move(inputs),
          [=](In in) {
            const auto wide_beside = [&](const Tensor& t) {
              return t.to(wide(in[0].dtype())).to(in[0].device());
            };
            return batch_norm(in[0], in[1], in[2], wide_beside(running_mean(width)),
                              wide_beside(running_variance(width)), {.training = training, .f = f},
                              in.size() > 3 ? in[3] : Tensor());
          },
          [=](In in) { return plain(in, training, f); }};
}

}  // namespace

OpCases batch_norm_cases() {
  OpCases cases{norm("batch statistics", true, {3, 4, 5}),
                norm("running statistics", false, {3, 4, 5}),
                norm("many rows", true, {200, 2}),
                norm("wide", true, {70, 132}),
                norm("running statistics, silu", false, {3, 4, 5}, Activation::silu),
                norm("running statistics, residual", false, {3, 4, 5}, Activation::silu, true),
                norm("wide, residual", true, {70, 132}, Activation::silu, true)};
  for (const Activation f : all_activations)
    for (const bool residual : {false, true})
      cases.push_back(norm("batch statistics, " + std::string(name(f)) + (residual ? ", residual" : ""), true,
                           {3, 4, 5}, f, residual));
  return cases;
}

}  // namespace tessera
