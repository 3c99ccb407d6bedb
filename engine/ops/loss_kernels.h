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

template <class Dev> struct LabelKernels {
  struct Census {
    int64_t first_bad;  // neither 0 .. classes-1 nor `ignore`; -1 for none
    int64_t kept;       // how many are not `ignore`
  };
  static Census count(int64_t rows, int64_t classes, std::optional<int64_t> ignore, const int64_t* labels);
};

// x, dx [rows, classes]; max, log_sum [rows]: log sum_k exp(x_k) of a row is max + log_sum.
template <class Dev> struct CrossEntropyKernels {
  // y [1] = sum over rows of -sum_k t_k log_softmax(x)_k, divided by `divisor`.
  template <class T>
  static void forward(int64_t rows, int64_t classes, const T* x, const Targets<T>& targets, double divisor,
                      T* y, Wide<T>* max, Wide<T>* log_sum);

  // dx = dy (softmax(x) sum_k t_k - t) / divisor, written or added to; dy [1].
  template <class T>
  static void backward(int64_t rows, int64_t classes, const T* x, const Targets<T>& targets, double divisor,
                       const Wide<T>* max, const Wide<T>* log_sum, const T* dy, T* dx, bool add);
};

}  // namespace tessera
