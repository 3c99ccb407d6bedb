// Compiled for AVX-512-BF16 whatever the rest is compiled for, as bf16_gemm_avx512_cpu.cpp: layer norm and
// its gradients, by few instructions for every number, for a row lies in the first cache and they are what it
// waits for.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include <immintrin.h>

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

__m512i rounded(const Halves& x) { return paired((__m512i)_mm512_cvtne2ps_pbh(x.odd, x.even)); }

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

// The means of four rows, by products with ones.
void means_of(int64_t width, const bf16* x, const int64_t* row, FourNumbers& mean) {
  const auto ones = (__m512bh)_mm512_set1_epi16(0x3f80);
  __m512 sum[rows_joined];
#pragma GCC unroll 4
  for (int i = 0; i < rows_joined; ++i) sum[i] = _mm512_setzero_ps();
  for_parts(width, [&](const auto& part, int64_t j) {
#pragma GCC unroll 4
    for (int i = 0; i < rows_joined; ++i)
      sum[i] = _mm512_dpbf16_ps(sum[i], (__m512bh)part.load(x + row[i] * width + j), ones);
  });
  mean.set(lanes_joined(sum, BySum{}) / all(static_cast<float>(width)));
}

// 1 / sqrt(variance + eps) of the rows.
void scales_of(int64_t width, const bf16* x, const int64_t* row, const FourNumbers& mean, float eps,
               FourNumbers& rstd) {
  __m512 even[rows_joined], odd[rows_joined];
#pragma GCC unroll 4
  for (int i = 0; i < rows_joined; ++i) even[i] = odd[i] = _mm512_setzero_ps();
  for_parts(width, [&](const auto& part, int64_t j) {
#pragma GCC unroll 4
    for (int i = 0; i < rows_joined; ++i) {
      const Halves from(part.load(x + row[i] * width + j));
      even[i] = add_squares(even[i], evens(part), from.even, all(mean.of[i]));
      odd[i] = add_squares(odd[i], odds(part), from.odd, all(mean.of[i]));
    }
  });
#pragma GCC unroll 4
  for (int i = 0; i < rows_joined; ++i) even[i] += odd[i];
  rstd.set(all(1) / _mm512_sqrt_ps(lanes_joined(even, BySum{}) / all(static_cast<float>(width)) + all(eps)));
}

void write_norms(int64_t width, const bf16* x, const int64_t* row, const FourNumbers& mean,
                 const FourNumbers& rstd, const bf16* weight, const bf16* bias, bf16* y) {
  for_parts(width, [&](const auto& part, int64_t j) {
    const Halves w(part.load(weight + j)), b(part.load(bias + j));
#pragma GCC unroll 4
    for (int i = 0; i < rows_joined; ++i) {
      const int64_t at = row[i] * width + j;
      const Halves from(part.load(x + at));
      const __m512 m = all(mean.of[i]), r = all(rstd.of[i]);
      part.store(y + at, rounded(Halves{_mm512_fmadd_ps((from.even - m) * r, w.even, b.even),
                                        _mm512_fmadd_ps((from.odd - m) * r, w.odd, b.odd)}));
    }
  });
}

// Adds the sums of a part's columns to those at `to`, which lie in order.
void add_columns(Whole, float* to, const Halves& sums) {
  const auto even = (__m512i)sums.even, odd = (__m512i)sums.odd;
  const __m512i low = _mm512_unpacklo_epi32(even, odd), high = _mm512_unpackhi_epi32(even, odd);
  const auto in_order = [](__m512i quarters) {
    return (__m512)_mm512_shuffle_i32x4(quarters, quarters, 0xd8);
  };
  const __m512 first = in_order(_mm512_shuffle_i32x4(low, high, 0x44)),
               second = in_order(_mm512_shuffle_i32x4(low, high, 0xee));
  _mm512_storeu_ps(to, _mm512_loadu_ps(to) + first);
  _mm512_storeu_ps(to + bf16_lanes, _mm512_loadu_ps(to + bf16_lanes) + second);
}
void add_columns(First part, float* to, const Halves& sums) {
  alignas(64) float all_of_them[bf16_panel] = {};
  add_columns(Whole{}, all_of_them, sums);
  for (int64_t j = 0; j < part.n; ++j) to[j] += all_of_them[j];
}

// A row's numbers in dx = rstd dy weight - scale (x - mean) - shift.
struct GradientOfRow {
  float mean, rstd, scale, shift;

  // From the means over the row of g = dy weight, and of g h with h = (x - mean) rstd.
  GradientOfRow(float m, float r, float g, float gh) : mean(m), rstd(r), scale(r * r * gh), shift(r * g) {}
};

void write_dx(const GradientOfRow& row, int64_t width, const bf16* dy, const bf16* x, const bf16* weight,
              bool add, bf16* dx) {
  const __m512 m = all(row.mean), r = all(row.rstd), scale = all(-row.scale), shift = all(-row.shift);
  const auto gradient = [=](__m512 d, __m512 from, __m512 w) {
    return _mm512_fmadd_ps(d * r, w, _mm512_fmadd_ps(from - m, scale, shift));
  };
  for_parts(width, [=](const auto& part, int64_t j) {
    const Halves d(part.load(dy + j)), from(part.load(x + j)), w(part.load(weight + j));
    Halves out{gradient(d.even, from.even, w.even), gradient(d.odd, from.odd, w.odd)};
    if (add) {
      const Halves before(part.load(dx + j));
      out = {out.even + before.even, out.odd + before.odd};
    }
    part.store(dx + j, rounded(out));
  });
}

// The gradients of R rows, which share the loads and stores of the sums of columns.
template <int R> void backward_rows(int64_t width, const LayerNormRows& of) {
  __m512 g[rows_joined], gh[rows_joined];
#pragma GCC unroll 4
  for (int i = 0; i < rows_joined; ++i) g[i] = gh[i] = _mm512_setzero_ps();
  for_parts(width, [&](const auto& part, int64_t j) {
    const Halves w(part.load(of.weight + j));
    const __m512 none = _mm512_setzero_ps();
    Halves dweight(none, none), dbias(none, none);
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
      const Halves d(part.load(of.dy + i * width + j)), x(part.load(of.x + i * width + j));
      const __m512 m = all(of.mean[i]), r = all(of.rstd[i]);
      const Halves dh(d.even * ((x.even - m) * r), d.odd * ((x.odd - m) * r));
      g[i] = _mm512_fmadd_ps(d.odd, w.odd, _mm512_fmadd_ps(d.even, w.even, g[i]));
      gh[i] = _mm512_fmadd_ps(dh.odd, w.odd, _mm512_fmadd_ps(dh.even, w.even, gh[i]));
      dweight = {dweight.even + dh.even, dweight.odd + dh.odd};
      dbias = {dbias.even + d.even, dbias.odd + d.odd};
    }
    add_columns(part, of.dweight + j, dweight);
    add_columns(part, of.dbias + j, dbias);
  });
  if (!of.dx) return;
  FourNumbers g_mean, gh_mean;
  g_mean.set(lanes_joined(g, BySum{}) / all(static_cast<float>(width)));
  gh_mean.set(lanes_joined(gh, BySum{}) / all(static_cast<float>(width)));
  for (int i = 0; i < R; ++i) {
    const GradientOfRow row(of.mean[i], of.rstd[i], g_mean.of[i], gh_mean.of[i]);
    write_dx(row, width, of.dy + i * width, of.x + i * width, of.weight, of.add, of.dx + i * width);
  }
}

}  // namespace

// Equal numbers have an exact mean, because a float holds the sum of 65,536 equal numbers of eight bits.
// Otherwise its error would be divided by sqrt(eps).
void layer_norm512(int64_t rows, int64_t width, const bf16* x, const bf16* weight, const bf16* bias,
                   float eps, bf16* y, float* mean, float* rstd) {
  for_four_rows(rows, [=](const int64_t* row) {
    FourNumbers average, scale;
    means_of(width, x, row, average);
    scales_of(width, x, row, average, eps, scale);
    write_norms(width, x, row, average, scale, weight, bias, y);
    write_rows(row, average, mean);
    write_rows(row, scale, rstd);
  });
}

void layer_norm_backward512(int64_t rows, int64_t width, const LayerNormRows& first) {
  LayerNormRows of = first;
  for (int64_t i = 0, step; i < rows; i += step) {
    step = rows - i >= rows_joined ? rows_joined : 1;
    step == rows_joined ? backward_rows<rows_joined>(width, of) : backward_rows<1>(width, of);
    of.dy += step * width;
    of.x += step * width;
    if (of.dx) of.dx += step * width;
    of.mean += step;
    of.rstd += step;
  }
}

}  // namespace tessera

#endif
