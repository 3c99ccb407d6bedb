#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "engine/core/dtype.h"

namespace tessera {

// Row i's targets: lam at class a[i], 1 - lam at class b[i] (b null: all at a[i]), or soft [rows, classes];
// smoothed.
template <class T> struct Targets {
  const int64_t *a, *b;
  double lam, smoothing;
  const T* soft;
  int64_t ignore = std::numeric_limits<int64_t>::min();  // the label of rows that have no loss

  TESSERA_HD bool ignores(int64_t i) const { return a && a[i] == ignore; }
};

// What a row's targets give its classes: t_k, smoothed.
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

// What the sum over the rows is divided by: a number, or how many rows are not ignored, where the arrays are.
struct LossDivisor {
  double rows;
  const int64_t* kept;  // null for `rows`

  TESSERA_HD double operator()() const { return !kept ? rows : *kept > 0 ? static_cast<double>(*kept) : 1.0; }
};

template <class Dev> struct LabelKernels {
  // The first row whose label is neither 0 .. classes-1 nor `ignore`; -1 for none, or where a graph is being
  // captured and nothing can be read. kept [1], where the labels are: how many are not `ignore`; or null.
  static int64_t first_bad(int64_t rows, int64_t classes, std::optional<int64_t> ignore,
                           const int64_t* labels, int64_t* kept);
};

// x, dx [rows, classes]; max, log_sum [rows]: log sum_k exp(x_k) of a row is max + log_sum.
template <class Dev> struct CrossEntropyKernels {
  // y [1] = sum over rows of -sum_k t_k log_softmax(x)_k, divided by `divisor`.
  template <class T>
  static void forward(int64_t rows, int64_t classes, const T* x, const Targets<T>& targets,
                      const LossDivisor& divisor, Wide<T>* y, Wide<T>* max, Wide<T>* log_sum);

  // dx = dy (softmax(x) sum_k t_k - t) / divisor, written or added to; dy [1].
  template <class T>
  static void backward(int64_t rows, int64_t classes, const T* x, const Targets<T>& targets,
                       const LossDivisor& divisor, const Wide<T>* max, const Wide<T>* log_sum,
                       const Wide<T>* dy, T* dx, bool add);
};

}  // namespace tessera
