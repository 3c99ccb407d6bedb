#pragma once

#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

template <class Dev> struct CorrectKernels {
  // count [1]: the rows of x [rows, classes] whose largest value stands at their label.
  template <class T>
  static void count(int64_t rows, int64_t classes, const T* x, const int64_t* labels, int64_t* count);
};

// Whether no value before `label` is as large, and none after it is larger.
template <class T> TESSERA_HD inline bool is_largest(const T* row, int64_t classes, int64_t label) {
  const Wide<T> own = Wide<T>(row[label]);
  for (int64_t k = 0; k < classes; ++k) {
    const Wide<T> other = Wide<T>(row[k]);
    if (k < label ? other >= own : other > own) return false;
  }
  return true;
}

}  // namespace tessera
