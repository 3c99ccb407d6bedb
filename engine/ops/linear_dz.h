#pragma once

#include <cstdint>

#include "engine/cpu/each.h"

namespace tessera {

// dz = dy f'(z) [rows, out] of linear's backward pass on the CPU. It overwrites the slope f'(z); where f is
// the identity the slope is null and dz is dy.
template <class T> struct LinearDz {
  const T* dy;
  T* slope;
  int64_t out;

  // Row `row` from column `from` on, after it has been made.
  const T* at(int64_t row, int64_t from = 0) const { return (slope ? slope : dy) + row * out + from; }

  // Makes the columns [from, from + outs) of some rows and returns at(row, from).
  const T* make(int64_t row, int64_t rows, int64_t from, int64_t outs) const {
    if (!slope) return at(row, from);
    const bool joined = outs == out;  // the rows follow one another
    const int64_t lines = joined ? 1 : rows, n = joined ? rows * outs : outs;
    for (int64_t i = 0; i < lines; ++i) {
      const int64_t begin = (row + i) * out + from;
      write_each(0, n, slope + begin, false, [of_y = dy + begin, of_z = slope + begin](int64_t j) {
        return Wide<T>(of_y[j]) * Wide<T>(of_z[j]);
      });
    }
    return at(row, from);
  }
};

}  // namespace tessera
