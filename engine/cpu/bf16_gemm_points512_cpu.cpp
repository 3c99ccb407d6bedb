// Compiled for AVX-512-BF16 whatever the rest is compiled for, as bf16_gemm_avx512_cpu.cpp: the additions of
// minimal filtering, in floats, for 32 channels at a time. Their formulas are those of
// engine/ops/conv_winograd_points.h, which is compiled for other processors.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include <immintrin.h>

#include "engine/cpu/bf16_gemm_x86.h"

namespace tessera {

namespace {

struct FourPoints {
  __m512 at[4];
};
struct TwoOutputs {
  __m512 at[2];
};

FourPoints to_points(__m512 a, __m512 b, __m512 c, __m512 d) { return {{a - c, b + c, c - b, d - b}}; }
TwoOutputs outputs_of(__m512 a, __m512 b, __m512 c, __m512 d) { return {{a + b + c, b - c + d}}; }

__m512 pixels(const bf16* from) {
  return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

// Both rows of a square of outputs for 16 channels. from [16 points], `plane` apart
struct Square {
  TwoOutputs rows[2];

  inline __attribute__((always_inline)) Square(const float* from, int64_t plane) {
    TwoOutputs columns[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j)
      columns[j] =
          outputs_of(_mm512_loadu_ps(from + j * plane), _mm512_loadu_ps(from + (4 + j) * plane),
                     _mm512_loadu_ps(from + (8 + j) * plane), _mm512_loadu_ps(from + (12 + j) * plane));
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i)
      rows[i] = outputs_of(columns[0].at[i], columns[1].at[i], columns[2].at[i], columns[3].at[i]);
  }
};

}  // namespace

void pixels_to_points512(const PixelSquares& squares) {
  const PixelSquares q = squares;
  const bf16* const rows[] = {q.rows[0], q.rows[1], q.rows[2], q.rows[3]};
  const int64_t right = q.width + q.padding;
  for (int64_t c = 0; c < q.channels; c += bf16_panel) {
    const auto column = [&](int64_t x, int64_t half) {
      const int64_t at = (x - q.padding) * q.channels + c + half * bf16_lanes;
      if (x < q.padding || x >= right) return FourPoints{};
      return to_points(pixels(rows[0] + at), pixels(rows[1] + at), pixels(rows[2] + at),
                       pixels(rows[3] + at));
    };
    FourPoints first[2] = {column(0, 0), column(0, 1)}, second[2] = {column(1, 0), column(1, 1)};
    bf16* square = q.to + c;
    for (int64_t i = 0; i < q.count; ++i, square += q.channels) {
      const FourPoints third[2] = {column(2 * i + 2, 0), column(2 * i + 2, 1)},
                       fourth[2] = {column(2 * i + 3, 0), column(2 * i + 3, 1)};
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        const FourPoints low = to_points(first[0].at[r], second[0].at[r], third[0].at[r], fourth[0].at[r]),
                         high = to_points(first[1].at[r], second[1].at[r], third[1].at[r], fourth[1].at[r]);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j)
          _mm512_storeu_si512(square + (4 * r + j) * q.plane,
                              (__m512i)_mm512_cvtne2ps_pbh(high.at[j], low.at[j]));
      }
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        first[half] = third[half];
        second[half] = fourth[half];
      }
    }
  }
}

void outputs_of_points512(const OutputSquares& q) {
  const __m512 low = _mm512_loadu_ps(q.start), high = _mm512_loadu_ps(q.start + bf16_lanes);
  const float* from = q.from;
  for (int64_t x = 0; x < q.width; x += 2, from += bf16_panel) {
    const Square left(from, q.plane), right(from + bf16_lanes, q.plane);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      if (!q.rows[i]) break;
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) {
        if (x + j >= q.width) break;
        bf16* to = q.rows[i] + (x + j) * q.pixel;
        __m512 a = left.rows[i].at[j] + low, b = right.rows[i].at[j] + high;
        if (q.add) {
          const __m512i before = _mm512_loadu_si512(to);
          a = a + widened(_mm512_castsi512_si256(before));
          b = b + widened(_mm512_extracti64x4_epi64(before, 1));
        }
        _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(b, a));
      }
    }
  }
}

}  // namespace tessera

#endif
