#pragma once

// Sums along a row, whose lanes are added pairwise. The compiler's own reductions add them one after another,
// which takes longer than a short row itself.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "engine/core/dtype.h"
#include "engine/cpu/simd.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace tessera {

// The lanes<Wide<T>> numbers from here on, widened to a vector.
template <class T> inline Vector<Wide<T>> load_wide(const T* from) {
  if constexpr (std::is_same_v<T, bf16>) {
    typedef uint32_t Words __attribute__((vector_size(vector_bytes)));
#ifdef __AVX512F__  // g++ 12 widens each half of such a vector by itself
    const auto words = (Words)_mm512_maskz_cvtepu16_epi32(
        0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#else
    typedef uint16_t Halves __attribute__((vector_size(vector_bytes / 2), aligned(2), may_alias));
    const auto words = __builtin_convertvector(*reinterpret_cast<const Halves*>(from), Words);
#endif
    return std::bit_cast<Vector<float>>(words << 16);
  } else {
    return load_vector(from);
  }
}

// The sum of f(x[i], y[i], ...) over i in [0, n) for the rows x, y, ... of T; f takes and returns vectors as
// well as single numbers.
template <class F, class T, class... Others>
inline Wide<T> sum_each(int64_t n, F f, const T* x, const Others*... others) {
  using W = Wide<T>;
  constexpr int64_t step = lanes<W>;
  Vector<W> even{}, odd{};
  int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    even += f(load_wide(x + i), load_wide(others + i)...);
    odd += f(load_wide(x + i + step), load_wide(others + i + step)...);
  }
  if (i + step <= n) {
    even += f(load_wide(x + i), load_wide(others + i)...);
    i += step;
  }
  W sum = sum_of_lanes<W>(even + odd);
  for (; i < n; ++i) sum += f(W(x[i]), W(others[i])...);
  return sum;
}

// The sums of x[i], and of a[i] b[i], over i in [0, n).
template <class T> inline Wide<T> sum_of_row(int64_t n, const T* x) {
  return sum_each(
      n, [](auto value) { return value; }, x);
}
template <class T> inline Wide<T> dot_product(int64_t n, const T* a, const T* b) {
  return sum_each(
      n, [](auto of_a, auto of_b) { return of_a * of_b; }, a, b);
}

}  // namespace tessera
