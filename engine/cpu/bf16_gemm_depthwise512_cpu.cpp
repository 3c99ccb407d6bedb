// Compiled for AVX-512-BF16 whatever the rest is compiled for, as bf16_gemm_avx512_cpu.cpp: the depthwise
// convolution, a channel a lane. The pixels of two rows of a window are interleaved in registers, so that one
// instruction multiplies a tap of each, and every window that reads these pixels takes them from there.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include <immintrin.h>

namespace tessera {

namespace {

// For the columns 0 to 15 and 16 to 31 the numbers of two rows of pixels, alternating.
struct Pairs {
  __m512i low, high;
};

Pairs interleaved(__m512i even, const Pairs& order, __m512i odd) {
  return {_mm512_permutex2var_epi16(even, order.low, odd), _mm512_permutex2var_epi16(even, order.high, odd)};
}

// The sums of 32 channels.
struct Sums {
  __m512 low, high;

  void add(const Pairs& pixels, const bf16* taps) {
    low = _mm512_dpbf16_ps(low, (__m512bh)pixels.low, (__m512bh)_mm512_loadu_si512(taps));
    high = _mm512_dpbf16_ps(high, (__m512bh)pixels.high, (__m512bh)_mm512_loadu_si512(taps + bf16_panel));
  }
};

// The windows [i, i + n) of k x k. Each pixel is read once.
template <int k, int stride, int n>
void windows(const DepthwiseRow& at, __mmask32 channels, __mmask32 wanted, int64_t i) {
  const Pairs order{_mm512_loadu_si512(at.order), _mm512_loadu_si512(at.order + 32)};
  constexpr int64_t pairs = pairs_of(k);
  Sums sums[n];
#pragma GCC unroll 8
  for (int w = 0; w < n; ++w) sums[w] = {_mm512_loadu_ps(at.start), _mm512_loadu_ps(at.start + bf16_lanes)};
  const int64_t left = i * stride - at.padding;
#pragma GCC unroll 16
  for (int column = 0; column < (n - 1) * stride + k; ++column) {
    const int64_t x = left + column;
    if (x < 0 || x >= at.width) continue;
    const auto pixel = [&](int u) { return _mm512_maskz_loadu_epi16(channels, at.rows[u] + x * at.pixel); };
    Pairs read[pairs];
#pragma GCC unroll 4
    for (int p = 0; p < pairs; ++p)
      read[p] = interleaved(pixel(2 * p), order, 2 * p + 1 < k ? pixel(2 * p + 1) : _mm512_setzero_si512());
#pragma GCC unroll 8
    for (int w = 0; w < n; ++w) {
      const int v = column - w * stride;
      if (v < 0 || v >= k) continue;
#pragma GCC unroll 4
      for (int p = 0; p < pairs; ++p) sums[w].add(read[p], at.taps + (v * pairs + p) * 2 * bf16_panel);
    }
  }
#pragma GCC unroll 8
  for (int w = 0; w < n; ++w)
    _mm512_mask_storeu_epi16(at.y + (i + w) * at.step, wanted,
                             (__m512i)_mm512_cvtne2ps_pbh(sums[w].high, sums[w].low));
}

__mmask32 first_of_panel(int64_t n) { return n == bf16_panel ? ~__mmask32{} : (1u << n) - 1; }

template <int k, int stride> void row_of_windows(const DepthwiseRow& at) {
  constexpr int together = 4;
  const __mmask32 wanted = first_of_panel(at.columns),
                  channels = first_of_panel(at.order[2 * at.columns - 2] + 1);
  int64_t i = 0;
  for (; i + together <= at.count; i += together) windows<k, stride, together>(at, channels, wanted, i);
  for (; i < at.count; ++i) windows<k, stride, 1>(at, channels, wanted, i);
}

}  // namespace

DepthwiseFunction depthwise512(int64_t kernel, int64_t stride) {
  switch (10 * kernel + stride) {
    case 31:
      return row_of_windows<3, 1>;
    case 32:
      return row_of_windows<3, 2>;
    case 51:
      return row_of_windows<5, 1>;
    case 52:
      return row_of_windows<5, 2>;
    case 71:
      return row_of_windows<7, 1>;
    case 72:
      return row_of_windows<7, 2>;
    default:
      return nullptr;
  }
}

}  // namespace tessera

#endif
