#pragma once

// How a block of a product in registers goes from one row of a matrix to the next.

#include <cstdint>

namespace tessera {

// Moves a pointer to the next row. The empty instruction keeps the compiler from computing the addresses of
// all rows beforehand: they are more than its registers hold, and each would be read from memory again. The
// function is always inlined, so that no kind of processor's kernels can lend theirs to another's.
template <class T> [[gnu::always_inline]] inline void advance(T*& row, int64_t stride) {
  row += stride;
  __asm__("" : "+r"(row));
}

}  // namespace tessera
