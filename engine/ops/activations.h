#pragma once

#include <cstdint>
#include <string_view>

#include "engine/core/tensor.h"

namespace tessera {

// Functions of each element, x [...] -> [...]. Phi is the standard normal distribution, s the sigmoid.
enum class Activation : uint8_t { none, relu, gelu, gelu_tanh, silu, sigmoid, log_sigmoid, tanh };

std::string_view name(Activation activation);  // "gelu_tanh"

Tensor relu(const Tensor& x);         // max(x, 0)
Tensor gelu(const Tensor& x);         // x Phi(x) (Hendrycks and Gimpel, 2016), with the error function
Tensor gelu_tanh(const Tensor& x);    // its approximation x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
Tensor silu(const Tensor& x);         // x s(x)
Tensor sigmoid(const Tensor& x);      // 1 / (1 + exp(-x))
Tensor log_sigmoid(const Tensor& x);  // -log(1 + exp(-x)), exact far out too
Tensor tanh(const Tensor& x);

}  // namespace tessera
