#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/core/dtype.h"
#include "engine/core/parallel.h"

namespace tessera {

// out = value, so written that the compiler's vector loops can store a bf16 (not as the copy of a class).
template <class T> inline void store(T& out, Wide<T> value) {
  if constexpr (std::is_same_v<T, bf16>)
    out.bits = bf16(value).bits;
  else
    out = value;
}

// out[i] = f(i), or out[i] += f(i), for i in [begin, end): one vector loop for the CPU kernels. f returns a
// Wide<T>. What f reads may be `out` itself, at i alone.
template <class T, class F> void write_each(int64_t begin, int64_t end, T* out, bool add, F&& f) {
  if (add) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) store(out[i], Wide<T>(out[i]) + f(i));
  } else {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) store(out[i], f(i));
  }
}

// The same for [0, n) on all threads.
template <class T, class F> void parallel_write(int64_t n, T* out, bool add, F&& f) {
  parallel_for(n, 1 << 14, [=](int64_t begin, int64_t end) { write_each(begin, end, out, add, f); });
}

}  // namespace tessera
