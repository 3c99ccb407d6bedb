#pragma once

#include <cstdint>
#include <string_view>

#include "engine/core/tensor.h"
#include "engine/ops/activation_table.h"

namespace tessera {

#define TESSERA_NAME(name, ...) name,
/// Activation::none is the identity; the others are the rows of activation_table.h.
enum class Activation : uint8_t { none, TESSERA_ACTIVATIONS(TESSERA_NAME) };
#undef TESSERA_NAME

// All but none, in the table's order.
#define TESSERA_VALUE(name, ...) Activation::name,
inline constexpr Activation all_activations[] = {TESSERA_ACTIVATIONS(TESSERA_VALUE)};
#undef TESSERA_VALUE

std::string_view name(Activation activation);  ///< "gelu_tanh", as in the table; "none"

// A function for each row of the table, applied to every element: x [...] -> [...]. relu(x), gelu(x)
// (Hendrycks and Gimpel, 2016, with the error function), gelu_tanh(x) (its approximation), silu(x),
// sigmoid(x), log_sigmoid(x) (exact for large |x| too), tanh(x). They fail for an x that is not floating.
#define TESSERA_DECLARE(name, ...) Tensor name(const Tensor& x);
TESSERA_ACTIVATIONS(TESSERA_DECLARE)
#undef TESSERA_DECLARE

/// The activation of x; x itself for Activation::none.
Tensor activation(Activation f, const Tensor& x);

}  // namespace tessera
