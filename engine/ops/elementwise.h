#pragma once

#include "engine/core/tensor.h"

namespace tessera {

// Arithmetic by element. The shapes broadcast as in NumPy: aligned at the last axis, a size of 1 stretches.
// Fails where they do not, and for inputs of different types.
Tensor add(const Tensor& a, const Tensor& b);
Tensor subtract(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);
Tensor divide(const Tensor& a, const Tensor& b);

Tensor scale(const Tensor& x, double c);       // c x
Tensor add_scalar(const Tensor& x, double c);  // x + c

Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);  // natural; NaN below 0
Tensor sqrt(const Tensor& x);
Tensor square(const Tensor& x);
Tensor absolute(const Tensor& x);  // its gradient at 0 is 0

// x in another floating type, rounded to it; x itself where it has that type. Fails for an x that is not
// floating, or for such a type.
Tensor cast(const Tensor& x, DType dtype);

// 1 where x <= c, else 0, as where x is NaN. Not recorded: its gradient is 0.
Tensor at_most(const Tensor& x, double c);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return subtract(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return multiply(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return divide(a, b); }
inline Tensor operator-(const Tensor& x) { return scale(x, -1); }
inline Tensor operator*(double c, const Tensor& x) { return scale(x, c); }
inline Tensor operator*(const Tensor& x, double c) { return scale(x, c); }
inline Tensor operator/(const Tensor& x, double c) { return scale(x, 1 / c); }
inline Tensor operator+(const Tensor& x, double c) { return add_scalar(x, c); }
inline Tensor operator-(const Tensor& x, double c) { return add_scalar(x, -c); }

}  // namespace tessera
