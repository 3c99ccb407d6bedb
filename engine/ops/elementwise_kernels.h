#pragma once

#include <cmath>
#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/cpu/fast_math.h"
#include "engine/cpu/walk.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

enum class Binary : uint8_t { add, subtract, multiply, divide };
enum class Unary : uint8_t { scale, add_scalar, exp, log, sqrt, square, absolute, at_most };

template <class Dev> struct BinaryKernels {
  // y = f(a, b) at every step of the walk through a, b and y.
  template <class T> static void forward(Binary f, const Walk<3>& walk, const T* a, const T* b, Target<T> y);
};

template <class Dev> struct UnaryKernels {
  // y[i] = f(x[i]) for n elements; c is the constant of scale, add_scalar and at_most.
  template <class T> static void forward(Unary f, double c, int64_t n, const T* x, T* y);

  // dx[i] = dy[i] f'(x[i]). `saved` is what the formula reads: y for exp and sqrt, x for
  // log, square and absolute, null for the others.
  template <class T>
  static void backward(Unary f, double c, int64_t n, const T* saved, const T* dy, Target<T> dx);
};

// --- the functions; W is float or double ---

struct Add {
  template <class W> TESSERA_HD static W value(W a, W b) { return a + b; }
};
struct Subtract {
  template <class W> TESSERA_HD static W value(W a, W b) { return a - b; }
};
struct Multiply {
  template <class W> TESSERA_HD static W value(W a, W b) { return a * b; }
};
struct Divide {
  template <class W> TESSERA_HD static W value(W a, W b) { return a / b; }
};

struct Scale {
  template <class W> TESSERA_HD static W value(W x, W c) { return c * x; }
  template <class W> TESSERA_HD static W slope(W, W c) { return c; }
};
struct AddScalar {
  template <class W> TESSERA_HD static W value(W x, W c) { return x + c; }
  template <class W> TESSERA_HD static W slope(W, W) { return 1; }
};
struct Exp {
  template <class W> TESSERA_HD static W value(W x, W) { return fast_exp(x); }
  template <class W> TESSERA_HD static W slope(W y, W) { return y; }
};
struct Log {
  template <class W> TESSERA_HD static W value(W x, W) { return std::log(x); }
  template <class W> TESSERA_HD static W slope(W x, W) { return 1 / x; }
};
struct Sqrt {
  template <class W> TESSERA_HD static W value(W x, W) { return std::sqrt(x); }
  template <class W> TESSERA_HD static W slope(W y, W) { return 1 / (2 * y); }
};
struct Square {
  template <class W> TESSERA_HD static W value(W x, W) { return x * x; }
  template <class W> TESSERA_HD static W slope(W x, W) { return 2 * x; }
};
struct Absolute {
  template <class W> TESSERA_HD static W value(W x, W) { return x < 0 ? -x : x; }
  template <class W> TESSERA_HD static W slope(W x, W) { return x > 0 ? W(1) : x < 0 ? W(-1) : W(0); }
};
struct AtMost {
  template <class W> TESSERA_HD static W value(W x, W c) { return x <= c ? W(1) : W(0); }
  template <class W> TESSERA_HD static W slope(W, W) { return 0; }
};

// Calls use(F{}) with the struct F of the function.
template <class Use> void with_function(Binary f, Use&& use) {
  switch (f) {
    case Binary::add:
      return use(Add{});
    case Binary::subtract:
      return use(Subtract{});
    case Binary::multiply:
      return use(Multiply{});
    case Binary::divide:
      return use(Divide{});
  }
}

template <class Use> void with_function(Unary f, Use&& use) {
  switch (f) {
    case Unary::scale:
      return use(Scale{});
    case Unary::add_scalar:
      return use(AddScalar{});
    case Unary::exp:
      return use(Exp{});
    case Unary::log:
      return use(Log{});
    case Unary::sqrt:
      return use(Sqrt{});
    case Unary::square:
      return use(Square{});
    case Unary::absolute:
      return use(Absolute{});
    case Unary::at_most:
      return use(AtMost{});
  }
}

}  // namespace tessera
