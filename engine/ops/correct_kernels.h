#pragma once

#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

template <class Dev> struct CorrectKernels {
  // count [1]: the rows of x [rows, classes] whose largest value stands at their label.
  template <class T>
  static void count(int64_t rows, int64_t classes, const T* x, const int64_t* labels, int64_t* count);
};

// Whether value k keeps `label` from being the row's largest: it is larger, or as large and before it. All do
// where the label is no class, as it may be in a captured step, where nobody has looked.
template <class T> TESSERA_HD inline bool beats(const T* row, int64_t classes, int64_t k, int64_t label) {
  if (label < 0 || label >= classes) return true;
  const Wide<T> own = Wide<T>(row[label]), other = Wide<T>(row[k]);
  return k < label ? other >= own : other > own;
}

// Whether no value before `label` is as large, and none after it is larger.
template <class T> TESSERA_HD inline bool is_largest(const T* row, int64_t classes, int64_t label) {
  for (int64_t k = 0; k < classes; ++k)
    if (beats(row, classes, k, label)) return false;
  return true;
}

}  // namespace tessera
