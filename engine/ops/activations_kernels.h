#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/cpu/fast_math.h"
#include "engine/ops/activations.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

template <class Dev> struct ActivationKernels {
  // y[i] = f(x[i]) for n elements; y may be x.
  template <class T> static void forward(Activation f, int64_t n, const T* x, T* y);

  // dx[i] = dy[i] f'(x[i]); dx may be x or dy.
  template <class T> static void backward(Activation f, int64_t n, const T* x, const T* dy, Target<T> dx);
};

// Both on the CPU in the calling thread, for the epilogue of another kernel. y may be x, dx may be dy or x.
template <class T> void activate(Activation f, const T* x, T* y, int64_t n);
template <class T> void activate_backward(Activation f, const T* x, const T* dy, T* dx, int64_t n);

// The rows of activation_table.h: each function and its derivative, for both devices. W is float, double or
// what computes like them.

struct Identity {
  template <class W> TESSERA_IN_LOOPS static W value(W x) { return x; }
  template <class W> TESSERA_IN_LOOPS static W slope(W) { return 1; }
};

struct Relu {
  template <class W> TESSERA_IN_LOOPS static W value(W x) { return x < 0 ? W(0) : x; }
  template <class W> TESSERA_IN_LOOPS static W slope(W x) { return x > 0 ? W(1) : W(0); }
};

struct Gelu {
  template <class W> TESSERA_IN_LOOPS static W value(W x) { return x * fast_normal(x).cumulative; }
  template <class W> TESSERA_IN_LOOPS static W slope(W x) {
    const Normal<W> at = fast_normal(x);
    return at.cumulative + x * at.density;
  }
};

struct Sigmoid {
  template <class W> TESSERA_IN_LOOPS static W value(W x) { return 1 / (1 + fast_exp(-x)); }
  template <class W> TESSERA_IN_LOOPS static W slope(W x) {
    const W s = value(x);
    return s * (1 - s);
  }
};

struct GeluTanh {  // (1 + tanh u) / 2 = sigmoid(2u)
  static constexpr double two_root = 1.5957691216057307118, cubic = 0.044715;  // 2 sqrt(2 / pi)
  template <class W> TESSERA_IN_LOOPS static W value(W x) {
    return x * Sigmoid::value(W(two_root) * (x + W(cubic) * x * x * x));
  }
  template <class W> TESSERA_IN_LOOPS static W slope(W x) {
    const W s = Sigmoid::value(W(two_root) * (x + W(cubic) * x * x * x));
    return s + x * s * (1 - s) * W(two_root) * (1 + 3 * W(cubic) * x * x);
  }
};

struct Silu {
  template <class W> TESSERA_IN_LOOPS static W value(W x) { return x * Sigmoid::value(x); }
  template <class W> TESSERA_IN_LOOPS static W slope(W x) {
    const W s = Sigmoid::value(x);
    return s * (1 + x * (1 - s));
  }
};

struct LogSigmoid {
  template <class W> TESSERA_IN_LOOPS static W value(W x) {
    const W size = x < 0 ? -x : x;
    return (x < 0 ? x : W(0)) - fast_log1p(fast_exp(-size));
  }
  template <class W> TESSERA_IN_LOOPS static W slope(W x) { return Sigmoid::value(-x); }
};

struct Tanh {
  template <class W> TESSERA_IN_LOOPS static W value(W x) { return fast_tanh(x); }
  template <class W> TESSERA_IN_LOOPS static W slope(W x) {
    const W y = fast_tanh(x);
    return 1 - y * y;
  }
};

// Calls use(F{}) with the struct F of the activation, so that the choice is made once an array.
template <class Use> void with_activation(Activation activation, Use&& use) {
#define TESSERA_USE(name, Struct, ...) \
  case Activation::name:               \
    return use(Struct{});
  switch (activation) {
    case Activation::none:
      return use(Identity{});
      TESSERA_ACTIVATIONS(TESSERA_USE)
  }
#undef TESSERA_USE
}

}  // namespace tessera
