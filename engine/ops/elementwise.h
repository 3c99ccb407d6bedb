#pragma once

#include "engine/core/tensor.h"

namespace tessera {

/// Arithmetic on elements. The shapes broadcast as in NumPy: aligned at the last axis, an axis of size 1 is
/// repeated. They fail where the shapes do not broadcast, and for inputs of different types or devices.
Tensor add(const Tensor& a, const Tensor& b);
Tensor subtract(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);
Tensor divide(const Tensor& a, const Tensor& b);

Tensor scale(const Tensor& x, double c);       ///< c x
Tensor add_scalar(const Tensor& x, double c);  ///< x + c

Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);  ///< natural; NaN below 0
Tensor sqrt(const Tensor& x);
Tensor square(const Tensor& x);
Tensor absolute(const Tensor& x);  ///< its gradient at 0 is 0

/// x rounded to another floating type; x itself if it has that type. Fails unless both types are floating.
Tensor cast(const Tensor& x, DType dtype);

/// 1 where x <= c, otherwise (also for NaN) 0. Not recorded, since its gradient is 0.
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
