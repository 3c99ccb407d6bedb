#pragma once

#include <cstdint>

namespace tessera {

template <class T> struct StatisticsItem {
  int64_t n;  // elements
  const T* from;
  T* to;
  // Whether it is copied after a step that was taken, or after one that was left out.
  bool when_taken;
};

template <class Dev> struct StatisticsKernels {
  // to = from of those of the `count` items for which `norm`, which lies where they are, is finite as they
  // want it; null: of all.
  template <class T> static void copy(const StatisticsItem<T>* items, int64_t count, const double* norm);
};

}  // namespace tessera
