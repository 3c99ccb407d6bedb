#pragma once

#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

template <class Dev> struct RotaryKernels {
  // x, y [rows, width], row r being token r % tokens; turns [tokens, pairs, 2], the cosine and sine of each
  // angle; width a multiple of 2 pairs. `back` turns the other way; `add` adds to y.
  template <class T>
  static void turn(int64_t rows, int64_t width, int64_t tokens, int64_t pairs, const Wide<T>* turns,
                   bool back, const T* x, bool add, T* y);
};

}  // namespace tessera
