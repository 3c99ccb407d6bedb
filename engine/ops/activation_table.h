#pragma once

// Every activation once: its name, the struct in activations_kernels.h that computes its value and slope, and
// its formulas (Phi, phi: the standard normal distribution and its density; s: the sigmoid). The enum, the
// functions, the catalog's rows, the kernels of both devices, linear's epilogue and the checked cases are
// made from this table.
// clang-format off
#define TESSERA_ACTIVATIONS(row)                                                                          \
  row(relu, Relu, "y = max(x, 0)", "dx = dy where x > 0, else 0")                                         \
  row(gelu, Gelu, "y = x Phi(x), Phi the normal distribution (erf)", "dx = dy * (Phi(x) + x phi(x))")     \
  row(gelu_tanh, GeluTanh, "y = x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3)",                    \
      "dx = dy * ((1 + tanh u)/2 + x/2 (1 - tanh^2 u) u')")                                               \
  row(silu, Silu, "y = x s(x), s = sigmoid", "dx = dy * (s(x) + y (1 - s(x)))")                           \
  row(sigmoid, Sigmoid, "y = 1 / (1 + exp(-x))", "dx = dy * y (1 - y)")                                   \
  row(log_sigmoid, LogSigmoid, "y = -log(1 + exp(-x))", "dx = dy * sigmoid(-x)")                          \
  row(tanh, Tanh, "y = tanh(x)", "dx = dy * (1 - y^2)")
// clang-format on
