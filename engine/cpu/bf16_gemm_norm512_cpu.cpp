// Compiled for AVX-512-BF16 whatever the rest is compiled for, as bf16_gemm_avx512_cpu.cpp: what a product's
// rounded numbers become while they lie in the cache.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include <immintrin.h>

#include "engine/cpu/bf16_gemm_x86.h"

namespace tessera {

namespace {

// 32 numbers as floats.
struct Numbers {
  __m512 low, high;
};

Numbers floats_of(__m512i numbers) {
  return {widened(_mm512_castsi512_si256(numbers)), widened(_mm512_extracti64x4_epi64(numbers, 1))};
}

__m512i rounded(const Numbers& x) { return (__m512i)_mm512_cvtne2ps_pbh(x.high, x.low); }

// The function computes z = scale x + shift, adds the residual unless it is null, and takes max(z, 0) if
// `relu`.
__m512i normed(__m512i x, const Numbers& scale, const Numbers& shift, const __m512i* residual, bool relu) {
  const Numbers from = floats_of(x);
  Numbers z{_mm512_fmadd_ps(scale.low, from.low, shift.low),
            _mm512_fmadd_ps(scale.high, from.high, shift.high)};
  if (residual) {
    const Numbers before = floats_of(rounded(z)), other = floats_of(*residual);
    z = {_mm512_add_ps(before.low, other.low), _mm512_add_ps(before.high, other.high)};
  }
  // The second operand is the result where either is NaN.
  if (relu) z = {_mm512_max_ps(_mm512_setzero_ps(), z.low), _mm512_max_ps(_mm512_setzero_ps(), z.high)};
  return rounded(z);
}

// Whole reads and writes all 32 numbers, without masks, because masked stores are slow on some processors.
struct Whole {
  static Numbers floats(const float* from) {
    return {_mm512_loadu_ps(from), _mm512_loadu_ps(from + bf16_lanes)};
  }
  static __m512i load(const bf16* from) { return _mm512_loadu_si512(from); }
  static void store(bf16* to, __m512i numbers) { _mm512_storeu_si512(to, numbers); }
};

// First reads and writes the first n of 32 numbers.
struct First {
  int64_t n;

  __mmask32 wanted() const { return (1u << n) - 1; }
  Numbers floats(const float* from) const {
    return {_mm512_maskz_loadu_ps(first_lanes(n), from),
            _mm512_maskz_loadu_ps(first_lanes(n - bf16_lanes), from + bf16_lanes)};
  }
  __m512i load(const bf16* from) const { return _mm512_maskz_loadu_epi16(wanted(), from); }
  void store(bf16* to, __m512i numbers) const { _mm512_mask_storeu_epi16(to, wanted(), numbers); }
};

template <bool adds>
void norm_rows(int64_t n, int64_t columns, const float* scale, const float* shift, const bf16* x,
               const bf16* residual, bool relu, bf16* y) {
  for (int64_t row = 0; row < n; row += columns) {
    const auto some = [=](const auto& part, int64_t j) {
      const int64_t at = row + j;
      __m512i other = _mm512_setzero_si512();
      if (adds) other = part.load(residual + at);
      part.store(y + at, normed(part.load(x + at), part.floats(scale + j), part.floats(shift + j),
                                adds ? &other : nullptr, relu));
    };
    const int64_t end = columns < n - row ? columns : n - row;
    int64_t j = 0;
    for (; j + bf16_panel <= end; j += bf16_panel) some(Whole{}, j);
    if (j < end) some(First{end - j}, j);
  }
}

}  // namespace

void norm512(int64_t n, int64_t columns, const float* scale, const float* shift, const bf16* x,
             const bf16* residual, bool relu, bf16* y) {
  const auto rows = residual ? norm_rows<true> : norm_rows<false>;
  rows(n, columns, scale, shift, x, residual, relu, y);
}

}  // namespace tessera

#endif
