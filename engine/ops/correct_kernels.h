#pragma once

#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

template <class Dev> struct CorrectKernels {
  // count [1]: the number of rows of x [rows, classes] whose largest value is at their label.
  template <class T>
  static void count(int64_t rows, int64_t classes, const T* x, const int64_t* labels, int64_t* count);
};

// Whether value k keeps the label's from being the row's largest: it is larger, or as large and comes first.
// A label that is no class is always beaten: labels cannot be checked while a graph is captured.
template <class T> TESSERA_HD inline bool beats(const T* row, int64_t classes, int64_t k, int64_t label) {
  if (label < 0 || label >= classes) return true;
  const Wide<T> own = Wide<T>(row[label]), other = Wide<T>(row[k]);
  return k < label ? other >= own : other > own;
}

// Whether no value beats the label's.
template <class T> TESSERA_HD inline bool is_largest(const T* row, int64_t classes, int64_t label) {
  for (int64_t k = 0; k < classes; ++k)
    if (beats(row, classes, k, label)) return false;
  return true;
}

}  // namespace tessera
