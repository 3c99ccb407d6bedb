// Compiled for AVX-512-BF16 whatever the rest is compiled for, as bf16_gemm_avx512_cpu.cpp: the depthwise
// convolution, a channel a lane. The pixels of two rows of a window are interleaved in registers, so that one
// instruction multiplies a tap of each, and every window that reads these pixels takes them from there. The
// gradients of the taps pair two rows of windows in the same way, and stay in registers over an image.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include <immintrin.h>

#include "engine/cpu/bf16_gemm_x86.h"

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

  void add(const Pairs& pixels, const Pairs& taps) {
    low = _mm512_dpbf16_ps(low, (__m512bh)pixels.low, (__m512bh)taps.low);
    high = _mm512_dpbf16_ps(high, (__m512bh)pixels.high, (__m512bh)taps.high);
  }

  void add(__m512i numbers) {
    low = _mm512_add_ps(low, widened(_mm512_castsi512_si256(numbers)));
    high = _mm512_add_ps(high, widened(_mm512_extracti64x4_epi64(numbers, 1)));
  }
};

Pairs taps_at(const bf16* from) { return {_mm512_loadu_si512(from), _mm512_loadu_si512(from + bf16_panel)}; }

// The taps of a kernel, a pair of rows of a column each.
template <int k> struct Taps {
  const bf16* from;
  Pairs at(int64_t i) const { return taps_at(from + i * 2 * bf16_panel); }
};
// Those of 3 x 3 stay in registers over a row of windows.
template <> struct Taps<3> {
  Pairs of[6];
  explicit Taps(const bf16* from) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < 6; ++i) of[i] = taps_at(from + i * 2 * bf16_panel);
  }
  const Pairs& at(int64_t i) const { return of[i]; }
};

// The windows [i, i + n) of k x k. Each pixel is read once.
template <int k, int stride, int n>
[[gnu::always_inline]] inline void windows(const DepthwiseRow& at, const Taps<k>& taps, __mmask32 channels,
                                           __mmask32 wanted, int64_t i) {
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
      for (int p = 0; p < pairs; ++p) sums[w].add(read[p], taps.at(v * pairs + p));
    }
  }
#pragma GCC unroll 8
  for (int w = 0; w < n; ++w) {
    bf16* const y = at.y + (i + w) * at.step;
    if (at.add) sums[w].add(_mm512_maskz_loadu_epi16(wanted, y));
    _mm512_mask_storeu_epi16(y, wanted, (__m512i)_mm512_cvtne2ps_pbh(sums[w].high, sums[w].low));
  }
}

__mmask32 first_of_panel(int64_t n) { return n == bf16_panel ? ~__mmask32{} : (1u << n) - 1; }

template <int k, int stride> void row_of_windows(const DepthwiseRow& at) {
  constexpr int together = 4;
  const __mmask32 wanted = first_of_panel(at.columns),
                  channels = first_of_panel(at.order[2 * at.columns - 2] + 1);
  int64_t i = 0;
  const Taps<k> taps{at.taps};
  for (; i + together <= at.count; i += together) windows<k, stride, together>(at, taps, channels, wanted, i);
  for (; i < at.count; ++i) windows<k, stride, 1>(at, taps, channels, wanted, i);
}

// Two rows of pixels or windows: the numbers of 16 channels of both, alternating, as `order` says.
struct TwoRows {
  const bf16 *first, *second;

  __m512i at(int64_t i, __mmask32 channels, __m512i order) const {
    return _mm512_permutex2var_epi16(_mm512_maskz_loadu_epi16(channels, first + i), order,
                                     _mm512_maskz_loadu_epi16(channels, second + i));
  }
};

// The sums of the gradients of k x k taps for 16 channels.
template <int k> struct TapSums {
  __m512 of[k * k];

  explicit TapSums(const float* from, int64_t tap) {
#pragma GCC unroll 32
    for (int t = 0; t < k * k; ++t) of[t] = _mm512_loadu_ps(from + t * tap);
  }

  void store(float* to, int64_t tap) const {
#pragma GCC unroll 32
    for (int t = 0; t < k * k; ++t) _mm512_storeu_ps(to + t * tap, of[t]);
  }

  // Adds what n windows of two rows bring, [j, j + n). Each pixel is read once.
  template <int stride, int n>
  [[gnu::always_inline]] void add(const DepthwiseImage& at, const bf16* const* rows, bool two,
                                  const TwoRows& dy, int64_t j, __mmask32 channels, __m512i order) {
    __m512i windows[n];
#pragma GCC unroll 8
    for (int w = 0; w < n; ++w) windows[w] = dy.at((j + w) * at.step, channels, order);
    const int64_t left = j * stride - at.padding;
#pragma GCC unroll 16
    for (int column = 0; column < (n - 1) * stride + k; ++column) {
      const int64_t x = left + column;
      if (x < 0 || x >= at.width) continue;
#pragma GCC unroll 8
      for (int u = 0; u < k; ++u) {
        const TwoRows pixels{rows[u], two ? rows[u + stride] : at.zeros};
        const __m512i pair = pixels.at(x * at.pixel, channels, order);
#pragma GCC unroll 8
        for (int w = 0; w < n; ++w) {
          const int v = column - w * stride;
          if (v < 0 || v >= k) continue;
          of[u * k + v] = _mm512_dpbf16_ps(of[u * k + v], (__m512bh)pair, (__m512bh)windows[w]);
        }
      }
    }
  }
};

// The sums of the first or the second 16 channels stay in registers over the image.
template <int k, int stride>
void gradient_of_half(const DepthwiseImage& at, __mmask32 channels, int64_t half) {
  constexpr int together = 4;
  const __m512i order = _mm512_loadu_si512(at.order + half * 32);
  float* const to = at.sums + half * bf16_lanes;
  TapSums<k> sums(to, at.tap);
  for (int64_t i = 0; i < at.windows_h; i += 2) {
    const bool two = i + 1 < at.windows_h;
    const bf16* const dy = at.dy + i * at.windows_w * at.step;
    const TwoRows windows{dy, two ? dy + at.windows_w * at.step : at.zeros};
    int64_t j = 0;
    for (; j + together <= at.windows_w; j += together)
      sums.template add<stride, together>(at, at.rows + i * stride, two, windows, j, channels, order);
    for (; j < at.windows_w; ++j)
      sums.template add<stride, 1>(at, at.rows + i * stride, two, windows, j, channels, order);
  }
  sums.store(to, at.tap);
}

template <int k, int stride> void gradient_of_taps(const DepthwiseImage& at) {
  const __mmask32 channels = first_of_panel(at.columns);
  for (int64_t half = 0; half * bf16_lanes < at.columns; ++half)
    gradient_of_half<k, stride>(at, channels, half);
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

DepthwiseGradient depthwise_gradient512(int64_t kernel, int64_t stride) {
  switch (10 * kernel + stride) {
    case 31:
      return gradient_of_taps<3, 1>;
    case 32:
      return gradient_of_taps<3, 2>;
    case 51:
      return gradient_of_taps<5, 1>;
    case 52:
      return gradient_of_taps<5, 2>;
    default:
      return nullptr;
  }
}

}  // namespace tessera

#endif
