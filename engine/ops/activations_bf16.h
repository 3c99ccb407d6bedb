#pragma once

// The activations that the processor's bf16 kernels compute.

#include <optional>

#include "engine/cpu/bf16_gemm.h"
#include "engine/ops/activations.h"

namespace tessera {

inline std::optional<Bf16Function> bf16_function(Activation f) {
  switch (f) {
    case Activation::none:
      return Bf16Function::identity;
    case Activation::relu:
      return Bf16Function::relu;
    case Activation::gelu:
      return Bf16Function::gelu;
    case Activation::gelu_tanh:
      return Bf16Function::gelu_tanh;
    case Activation::silu:
      return Bf16Function::silu;
    case Activation::sigmoid:
      return Bf16Function::sigmoid;
    case Activation::log_sigmoid:
    case Activation::tanh:
      return {};
  }
  return {};
}

// Bf16Kernels::norm() with one of these functions; false where this processor has none.
class Bf16Norm {
 public:
  explicit Bf16Norm(Activation f) : kernels_(bf16_kernels()), function_(bf16_function(f)) {}

  explicit operator bool() const { return kernels_ && function_; }

  void operator()(int64_t n, int64_t columns, const float* scale, const float* shift, const bf16* x,
                  const bf16* residual, bf16* y) const {
    kernels_->norm(*function_, n, columns, scale, shift, x, residual, y);
  }

 private:
  const Bf16Kernels* kernels_;
  std::optional<Bf16Function> function_;
};

}  // namespace tessera
