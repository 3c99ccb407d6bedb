#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "engine/core/dtype.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// The targets of row i: lam at class a[i] and 1 - lam at class b[i] (without b, 1 at a[i]), or row i of soft
// [rows, classes]; then smoothed.
template <class T> struct Targets {
  const int64_t *a, *b;
  double lam, smoothing;
  const T* soft;
  int64_t ignore = std::numeric_limits<int64_t>::min();  // the label of rows that have no loss

  TESSERA_HD bool ignores(int64_t i) const { return a && a[i] == ignore; }
};

// t_k of one row, smoothed.
template <class T> struct RowTargets {
  using W = Wide<T>;
  const T* soft;  // [classes], or null
  int64_t a, b;   // -1 for none
  W keep, at_a, at_b, spread;

  TESSERA_HD RowTargets(const Targets<T>& targets, int64_t i, int64_t classes)
      : soft(targets.soft ? targets.soft + i * classes : nullptr),
        a(soft ? -1 : targets.a[i]),
        b(targets.b ? targets.b[i] : -1),
        keep(W(1 - targets.smoothing)),
        at_a(keep * (targets.b ? W(targets.lam) : W(1))),
        at_b(keep * W(1 - targets.lam)),
        spread(W(targets.smoothing / static_cast<double>(classes))) {}

  TESSERA_HD W operator()(int64_t k) const {
    return (soft ? keep * W(soft[k]) : (k == a ? at_a : W(0)) + (k == b ? at_b : W(0))) + spread;
  }
};

// What the sum over the rows is divided by: a number, or the count of rows that are not ignored, which lies
// on the device.
struct LossDivisor {
  double rows;
  const int64_t* kept;  // [1]; null where `rows` is the divisor

  TESSERA_HD double operator()() const { return !kept ? rows : *kept > 0 ? static_cast<double>(*kept) : 1.0; }
};

template <class Dev> struct LabelKernels {
  // The first row whose label is neither 0 .. classes-1 nor `ignore`; -1 for none, and while a graph is being
  // captured, when nothing can be read back. kept [1], on the labels' device, receives how many are not
  // `ignore`; it may be null.
  static int64_t first_bad(int64_t rows, int64_t classes, std::optional<int64_t> ignore,
                           const int64_t* labels, int64_t* kept);
};

// x, dx [rows, width], one column a class; max, log_sum [rows]: log sum_k exp(x_k) of a row is max + log_sum.
template <class Dev> struct CrossEntropyKernels {
  // y [1] = sum over rows of -sum_k t_k log_softmax(x)_k, divided by `divisor`.
  template <class T>
  static void forward(RowsSize size, const T* x, const Targets<T>& targets, const LossDivisor& divisor,
                      Wide<T>* y, Wide<T>* max, Wide<T>* log_sum);

  // dx = dy (softmax(x) sum_k t_k - t) / divisor; dy [1].
  template <class T>
  static void backward(RowsSize size, const T* x, const Targets<T>& targets, const LossDivisor& divisor,
                       const Wide<T>* max, const Wide<T>* log_sum, const Wide<T>* dy, Target<T> dx);
};

}  // namespace tessera
