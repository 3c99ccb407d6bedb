#pragma once

#include <cstdint>

namespace tessera {

// A buffer to copy.
template <class T> struct StatisticsItem {
  int64_t n;  // elements
  const T* from;
  T* to;
  bool when_taken;  // copy if the step was taken (the norm is finite); else copy if it was skipped
};

template <class Dev> struct StatisticsKernels {
  // to = from for those of the `count` items whose when_taken is whether *norm, in the arrays' memory, is
  // finite; for all of them if norm is null.
  template <class T> static void copy(const StatisticsItem<T>* items, int64_t count, const double* norm);
};

}  // namespace tessera
