#include "engine/ops/activations.h"

#include <cmath>
#include <numbers>

#include "engine/check/op_case.h"
#include "engine/ops/elementwise.h"

namespace tessera {

namespace {

Tensor plain_sigmoid(const Tensor& x) {
  return divide(Tensor::full({}, 1, x.dtype(), x.device()), exp(-x) + 1);
}

Tensor plain_tanh(const Tensor& x) { return 2 * plain_sigmoid(2 * x) - 1; }

Tensor plain_gelu_tanh(const Tensor& x) {
  const Tensor u = std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * (x * x * x));
  return 0.5 * x * (plain_tanh(u) + 1);
}

// The twin of an activation. gelu has none, since no op computes erf.
OpCase::Function plain(Activation f) {
  const auto of = [](Tensor (*twin)(const Tensor&)) {
    return [twin](std::span<const Tensor> in) { return twin(in[0]); };
  };
  switch (f) {
    case Activation::relu:
      return of([](const Tensor& x) { return 0.5 * (x + absolute(x)); });
    case Activation::gelu_tanh:
      return of(plain_gelu_tanh);
    case Activation::silu:
      return of([](const Tensor& x) { return x * plain_sigmoid(x); });
    case Activation::sigmoid:
      return of(plain_sigmoid);
    case Activation::log_sigmoid:
      return of([](const Tensor& x) { return -log(exp(-x) + 1); });
    case Activation::tanh:
      return of(plain_tanh);
    default:
      return nullptr;
  }
}

}  // namespace

OpCases activations_cases() {
  OpCases cases;
  for (const Activation f : all_activations)
    cases.push_back({std::string(name(f)),
                     "",
                     {random_tensor_away_from_zero({3, 37}, 1)},
                     [f](std::span<const Tensor> in) { return activation(f, in[0]); },
                     plain(f)});
  return cases;
}

}  // namespace tessera
