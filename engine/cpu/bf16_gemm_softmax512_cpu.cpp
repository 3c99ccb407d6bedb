// Compiled for AVX-512-BF16 whatever the rest is compiled for, as bf16_gemm_avx512_cpu.cpp: attention's
// softmax, whose probabilities and gradients become factors of products as soon as they are computed.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include <immintrin.h>

#include "engine/cpu/bf16_gemm_x86.h"

namespace tessera {

namespace {

void store_half(bf16* to, __m512 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(x));
}
void store_whole(bf16* to, __m512 low, __m512 high) {
  _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

// The largest number of each row.
void row_maxima(int64_t rows, int64_t columns, FloatRows s, float* maxima) {
  for_four_rows(rows, [=](const int64_t* row) {
    __m512 most[rows_joined];
#pragma GCC unroll 4
    for (int r = 0; r < rows_joined; ++r) {
      const float* from = s.data + row[r] * s.row;
      most[r] = _mm512_loadu_ps(from);
      for (int64_t j = bf16_lanes; j < columns; j += bf16_lanes)
        most[r] = _mm512_max_ps(most[r], _mm512_loadu_ps(from + j));
    }
    FourNumbers of_rows;
    of_rows.set(lanes_joined(most, ByMaximum{}));
    write_rows(row, of_rows, maxima);
  });
}

// p = exp(s - most), rounded, and its sum before.
__m512 exponentials(int64_t columns, const float* s, __m512 most, bf16* p) {
  __m512 sum = _mm512_setzero_ps();
  int64_t j = 0;
  for (; j + bf16_panel <= columns; j += bf16_panel) {
    const __m512 low = exponential(_mm512_loadu_ps(s + j) - most),
                 high = exponential(_mm512_loadu_ps(s + j + bf16_lanes) - most);
    sum += low + high;
    store_whole(p + j, low, high);
  }
  if (j < columns) {
    const __m512 last = exponential(_mm512_loadu_ps(s + j) - most);
    sum += last;
    store_half(p + j, last);
  }
  return sum;
}

// P = exp(s - lse) overwrites s; 1 / sum of P and sum of P dP / sum of P for each row.
void probabilities(int64_t rows, int64_t columns, FloatTarget s, FloatRows dp, const float* lse,
                   float* shares, float* means) {
  for_four_rows(rows, [=](const int64_t* row) {
    __m512 mass[rows_joined], sum[rows_joined];
#pragma GCC unroll 4
    for (int r = 0; r < rows_joined; ++r) {
      if (named_before(row, r)) {  // Its scores have been overwritten.
        mass[r] = mass[r - 1];
        sum[r] = sum[r - 1];
        continue;
      }
      float* to = s.data + row[r] * s.row;
      const float* dp_row = dp.data + row[r] * dp.row;
      const __m512 shift = all(lse[row[r]]);
      mass[r] = sum[r] = _mm512_setzero_ps();
      for (int64_t j = 0; j < columns; j += bf16_lanes) {
        const __m512 p = exponential(_mm512_loadu_ps(to + j) - shift);
        _mm512_storeu_ps(to + j, p);
        mass[r] += p;
        sum[r] = _mm512_fmadd_ps(p, _mm512_loadu_ps(dp_row + j), sum[r]);
      }
    }
    FourNumbers share, mean;
    const __m512 shares_of_rows = all(1) / lanes_joined(mass, BySum{});
    share.set(shares_of_rows);
    mean.set(lanes_joined(sum, BySum{}) * shares_of_rows);
    write_rows(row, share, shares);
    write_rows(row, mean, means);
  });
}

}  // namespace

void softmax512(int64_t rows, int64_t columns, FloatRows s, bf16* p, int64_t stride, float* maxima,
                float* sums) {
  row_maxima(rows, columns, s, maxima);
  for_four_rows(rows, [=](const int64_t* row) {
    __m512 sum[rows_joined];
#pragma GCC unroll 4
    for (int r = 0; r < rows_joined; ++r)
      sum[r] = named_before(row, r)
                   ? sum[r - 1]
                   : exponentials(columns, s.data + row[r] * s.row, all(maxima[row[r]]), p + row[r] * stride);
    FourNumbers of_rows;
    of_rows.set(lanes_joined(sum, BySum{}));
    write_rows(row, of_rows, sums);
  });
}

void softmax_backward512(int64_t rows, int64_t columns, FloatTarget s, FloatTarget dp, const float* lse,
                         bf16* p, bf16* ds, int64_t stride, float* shares, float* means) {
  probabilities(rows, columns, s, dp, lse, shares, means);
  for (int64_t r = 0; r < rows; ++r, p += stride) {
    const float* p_row = s.data + r * s.row;
    float* dp_row = dp.data + r * dp.row;
    const __m512 share = _mm512_set1_ps(shares[r]), mean = _mm512_set1_ps(means[r]);
    const auto probability = [&](int64_t j) { return _mm512_loadu_ps(p_row + j) * share; };
    const auto gradient = [&](int64_t j, __m512 of_p) { return of_p * (_mm512_loadu_ps(dp_row + j) - mean); };
    int64_t j = 0;
    for (; j + bf16_panel <= columns; j += bf16_panel) {
      const __m512 low = probability(j), high = probability(j + bf16_lanes);
      const __m512 ds_low = gradient(j, low), ds_high = gradient(j + bf16_lanes, high);
      store_whole(p + j, low, high);
      if (ds) {
        store_whole(ds + j, ds_low, ds_high);
      } else {
        _mm512_storeu_ps(dp_row + j, ds_low);
        _mm512_storeu_ps(dp_row + j + bf16_lanes, ds_high);
      }
    }
    if (j < columns) {
      const __m512 last = probability(j), ds_last = gradient(j, last);
      store_half(p + j, last);
      if (ds)
        store_half(ds + j, ds_last);
      else
        _mm512_storeu_ps(dp_row + j, ds_last);
    }
    if (ds) ds += stride;
  }
}

}  // namespace tessera

#endif
