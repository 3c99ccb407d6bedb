// Compiled for AVX-512-BF16 whatever the rest is compiled for, as bf16_gemm_avx512_cpu.cpp: attention's
// softmax, whose probabilities and gradients become factors of products as soon as they are computed.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include <immintrin.h>

#include "engine/cpu/bf16_gemm_x86.h"

namespace tessera {

namespace {

__m512 exponential(__m512 x) { return power_of_two(x * _mm512_set1_ps(1.44269504f)); }  // log2(e)

void store_half(bf16* to, __m512 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(x));
}
void store_whole(bf16* to, __m512 low, __m512 high) {
  _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

// The largest number of each row.
void row_maxima(int64_t rows, int64_t columns, FloatRows s, float* maxima) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = s.data + r * s.row;
    __m512 most = _mm512_loadu_ps(row);
    for (int64_t j = bf16_lanes; j < columns; j += bf16_lanes)
      most = _mm512_max_ps(most, _mm512_loadu_ps(row + j));
    maxima[r] = _mm512_reduce_max_ps(most);
  }
}

// P = exp(s - lse) overwrites s; 1 / sum of P and sum of P dP / sum of P for each row.
void exponentials(int64_t rows, int64_t columns, FloatTarget s, FloatRows dp, const float* lse, float* shares,
                  float* means) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = s.data + r * s.row;
    const float* dp_row = dp.data + r * dp.row;
    const __m512 shift = _mm512_set1_ps(lse[r]);
    __m512 mass = _mm512_setzero_ps(), sum = mass;
    for (int64_t j = 0; j < columns; j += bf16_lanes) {
      const __m512 p = exponential(_mm512_loadu_ps(row + j) - shift);
      _mm512_storeu_ps(row + j, p);
      mass += p;
      sum = _mm512_fmadd_ps(p, _mm512_loadu_ps(dp_row + j), sum);
    }
    shares[r] = 1 / _mm512_reduce_add_ps(mass);
    means[r] = _mm512_reduce_add_ps(sum) * shares[r];
  }
}

}  // namespace

void softmax512(int64_t rows, int64_t columns, FloatRows s, bf16* p, int64_t stride, float* maxima,
                float* sums) {
  row_maxima(rows, columns, s, maxima);
  for (int64_t r = 0; r < rows; ++r, p += stride) {
    const float* row = s.data + r * s.row;
    const __m512 most = _mm512_set1_ps(maxima[r]);
    __m512 sum = _mm512_setzero_ps();
    int64_t j = 0;
    for (; j + bf16_panel <= columns; j += bf16_panel) {
      const __m512 low = exponential(_mm512_loadu_ps(row + j) - most),
                   high = exponential(_mm512_loadu_ps(row + j + bf16_lanes) - most);
      sum += low + high;
      store_whole(p + j, low, high);
    }
    if (j < columns) {
      const __m512 last = exponential(_mm512_loadu_ps(row + j) - most);
      sum += last;
      store_half(p + j, last);
    }
    sums[r] = _mm512_reduce_add_ps(sum);
  }
}

void softmax_backward512(int64_t rows, int64_t columns, FloatTarget s, FloatTarget dp, const float* lse,
                         bf16* p, bf16* ds, int64_t stride, float* shares, float* means) {
  exponentials(rows, columns, s, dp, lse, shares, means);
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
