// Compiled for AVX-512-BF16 whatever the rest is compiled for, as bf16_gemm_avx512_cpu.cpp: layer norm, by
// few instructions for every number, for a row lies in the first cache and they are what it waits for.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include <immintrin.h>

#include <array>

#include "engine/cpu/bf16_gemm_x86.h"

namespace tessera {

namespace {

// The numbers 0, 2, ..., 30 of 32 and the numbers 1, 3, ..., 31, which widen by an instruction each.
struct Halves {
  __m512 even, odd;

  explicit Halves(__m512i numbers)
      : even((__m512)_mm512_slli_epi32(numbers, 16)),
        odd((__m512)_mm512_and_si512(numbers, _mm512_set1_epi32(static_cast<int32_t>(0xffff0000)))) {}
  Halves(__m512 evens, __m512 odds) : even(evens), odd(odds) {}
};

alignas(64) constexpr std::array<int16_t, bf16_panel> alternating = [] {
  std::array<int16_t, bf16_panel> order{};
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int16_t>(i / 2 + i % 2 * bf16_lanes);
  return order;
}();

__m512i rounded(const Halves& x) {
  return _mm512_permutexvar_epi16(_mm512_load_si512(alternating.data()),
                                  (__m512i)_mm512_cvtne2ps_pbh(x.odd, x.even));
}

// Which of them belong to a row.
__mmask16 evens(Whole) { return 0xffff; }
__mmask16 odds(Whole) { return 0xffff; }
__mmask16 evens(First first) { return first_lanes((first.n + 1) / 2); }
__mmask16 odds(First first) { return first_lanes(first.n / 2); }

// sum + (x - mean)^2 in the lanes that are wanted.
__m512 add_squares(__m512 sum, __mmask16 wanted, __m512 x, __m512 mean) {
  const __m512 off = _mm512_maskz_sub_ps(wanted, x, mean);
  return _mm512_fmadd_ps(off, off, sum);
}

// The sum of a row, by products with ones.
float sum_of_row(int64_t width, const bf16* x) {
  const auto ones = (__m512bh)_mm512_set1_epi16(0x3f80);
  __m512 sum = _mm512_setzero_ps();
  for_parts(width, [&](const auto& part, int64_t j) {
    sum = _mm512_dpbf16_ps(sum, (__m512bh)part.load(x + j), ones);
  });
  return _mm512_reduce_add_ps(sum);
}

}  // namespace

// Equal numbers have an exact mean, because a float holds the sum of 65,536 equal numbers of eight bits.
// Otherwise its error would be divided by sqrt(eps).
void layer_norm512(int64_t rows, int64_t width, const bf16* x, const bf16* weight, const bf16* bias,
                   float eps, bf16* y, float* mean, float* rstd) {
  const auto n = static_cast<float>(width);
  for (int64_t i = 0; i < rows; ++i, x += width, y += width) {
    const float average = sum_of_row(width, x) / n;
    const __m512 m = all(average);
    __m512 even = _mm512_setzero_ps(), odd = even;
    for_parts(width, [&](const auto& part, int64_t j) {
      const Halves from(part.load(x + j));
      even = add_squares(even, evens(part), from.even, m);
      odd = add_squares(odd, odds(part), from.odd, m);
    });
    mean[i] = average;
    rstd[i] = 1 / __builtin_sqrtf(_mm512_reduce_add_ps(even + odd) / n + eps);
    const __m512 r = all(rstd[i]);
    for_parts(width, [=](const auto& part, int64_t j) {
      const Halves from(part.load(x + j)), w(part.load(weight + j)), b(part.load(bias + j));
      part.store(y + j, rounded(Halves{_mm512_fmadd_ps((from.even - m) * r, w.even, b.even),
                                       _mm512_fmadd_ps((from.odd - m) * r, w.odd, b.odd)}));
    });
  }
}

}  // namespace tessera

#endif
