// Compiled for AVX-512-BF16 whatever the rest is compiled for, as bf16_gemm_avx512_cpu.cpp: what a product's
// numbers become while they lie in the cache.

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

Numbers floats(Whole, const float* from) {
  return {_mm512_loadu_ps(from), _mm512_loadu_ps(from + bf16_lanes)};
}
Numbers floats(First first, const float* from) {
  return {_mm512_maskz_loadu_ps(first_lanes(first.n), from),
          _mm512_maskz_loadu_ps(first_lanes(first.n - bf16_lanes), from + bf16_lanes)};
}

Numbers floats_of(__m512i numbers) {
  return {widened(_mm512_castsi512_si256(numbers)), widened(_mm512_extracti64x4_epi64(numbers, 1))};
}

__m512i rounded(const Numbers& x) { return (__m512i)_mm512_cvtne2ps_pbh(x.high, x.low); }

template <class F> Numbers each(const Numbers& x, F f) { return {f(x.low), f(x.high)}; }

__m512 one_and_power(__m512 x) { return all(1) + power_of_two(all(-1.44269504f) * x); }  // 1 + exp(-x)
__m512 sigmoid_of(__m512 x) { return all(1) / one_and_power(x); }

// The standard normal distribution Phi at x, and its density; relative error below 6e-6. The tail is that of
// normal_of() in fast_math.h, with fewer terms.
struct Normal {
  __m512 cumulative, density;

  explicit Normal(__m512 x) {
    const __m512 size = _mm512_abs_ps(x);
    const __m512 e = power_of_two(all(-0.72134752f) * size * size);  // exp(-x^2 / 2)
    const __m512 t = all(1) / _mm512_fmadd_ps(all(0.31f), size, all(1));
    __m512 y = all(-0.07392914f);
    y = _mm512_fmadd_ps(y, t, all(0.18045035f));
    y = _mm512_fmadd_ps(y, t, all(0.015744712f));
    y = _mm512_fmadd_ps(y, t, all(0.13342978f));
    y = _mm512_fmadd_ps(y, t, all(0.12044127f));
    y = _mm512_fmadd_ps(y, t, all(0.1238607f));
    const __m512 tail = e * t * y;
    cumulative = _mm512_mask_mov_ps(all(1) - tail, _mm512_movepi32_mask((__m512i)x), tail);
    density = all(0.398942280f) * e;
  }
};

// The functions of Bf16Function and their slopes, with the formulas of activations_kernels.h. `exact` says
// that f of a number that is a bf16 is one too, so that it need not be rounded before.
struct Identity {
  static constexpr bool exact = true;
  static __m512 value(__m512 x) { return x; }
  static __m512 slope(__m512) { return all(1); }
};

struct Relu {
  static constexpr bool exact = true;
  static __m512 value(__m512 x) { return _mm512_max_ps(all(0), x); }  // the second one where either is NaN
  static __m512 slope(__m512 x) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, all(0), _CMP_GT_OQ), all(1));
  }
};

struct Gelu {
  static constexpr bool exact = false;
  static __m512 value(__m512 x) { return x * Normal(x).cumulative; }
  static __m512 slope(__m512 x) {
    const Normal at(x);
    return _mm512_fmadd_ps(x, at.density, at.cumulative);
  }
};

struct GeluTanh {
  static constexpr bool exact = false;
  static __m512 square(__m512 x) { return all(0.044715f) * x * x; }
  static __m512 half(__m512 x) { return sigmoid_of(all(1.59576912f) * x * (all(1) + square(x))); }
  static __m512 value(__m512 x) { return x * half(x); }
  static __m512 slope(__m512 x) {
    const __m512 s = half(x);
    return s + x * s * (all(1) - s) * all(1.59576912f) * (all(1) + all(3) * square(x));
  }
};

struct Silu {
  static constexpr bool exact = false;
  static __m512 value(__m512 x) { return x / one_and_power(x); }
  static __m512 slope(__m512 x) {
    const __m512 s = sigmoid_of(x);
    return s * (all(1) + x * (all(1) - s));
  }
};

struct Sigmoid {
  static constexpr bool exact = false;
  static __m512 value(__m512 x) { return sigmoid_of(x); }
  static __m512 slope(__m512 x) {
    const __m512 s = sigmoid_of(x);
    return s * (all(1) - s);
  }
};

// Calls use(F{}) with the function's struct.
template <class Use> void with_function(Bf16Function f, Use use) {
  switch (f) {
    case Bf16Function::identity:
      return use(Identity{});
    case Bf16Function::relu:
      return use(Relu{});
    case Bf16Function::gelu:
      return use(Gelu{});
    case Bf16Function::gelu_tanh:
      return use(GeluTanh{});
    case Bf16Function::silu:
      return use(Silu{});
    case Bf16Function::sigmoid:
      return use(Sigmoid{});
  }
}

template <class F, bool sloped>
void activate_rows(int64_t rows, int64_t columns, FloatRows z, bf16* y, bf16* slope, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i, z.data += z.row, y += stride)
    for_parts(columns, [&](const auto& part, int64_t j) {
      const Numbers x = floats(part, z.data + j);
      part.store(y + j, rounded(each(x, F::value)));
      if constexpr (sloped) part.store(slope + i * stride + j, rounded(each(x, F::slope)));
    });
}

template <class F, bool adds>
void norm_rows(int64_t n, int64_t columns, const float* scale, const float* shift, const bf16* x,
               const bf16* residual, bf16* y) {
  for (int64_t row = 0; row < n; row += columns)
    for_parts(columns < n - row ? columns : n - row, [=](const auto& part, int64_t j) {
      const int64_t at = row + j;
      const Numbers from = floats_of(part.load(x + at)), factor = floats(part, scale + j),
                    offset = floats(part, shift + j);
      Numbers z{_mm512_fmadd_ps(factor.low, from.low, offset.low),
                _mm512_fmadd_ps(factor.high, from.high, offset.high)};
      if constexpr (adds) {
        const Numbers before = floats_of(rounded(z)), other = floats_of(part.load(residual + at));
        z = {before.low + other.low, before.high + other.high};
        if constexpr (!F::exact) z = floats_of(rounded(z));
      }
      part.store(y + at, rounded(each(z, F::value)));
    });
}

}  // namespace

void activate512(Bf16Function f, int64_t rows, int64_t columns, FloatRows z, bf16* y, bf16* slope,
                 int64_t stride) {
  with_function(f, [=]<class F>(F) {
    const auto all_rows = slope ? activate_rows<F, true> : activate_rows<F, false>;
    all_rows(rows, columns, z, y, slope, stride);
  });
}

void norm512(Bf16Function f, int64_t n, int64_t columns, const float* scale, const float* shift,
             const bf16* x, const bf16* residual, bf16* y) {
  with_function(f, [=]<class F>(F) {
    const auto all_rows = residual ? norm_rows<F, true> : norm_rows<F, false>;
    all_rows(n, columns, scale, shift, x, residual, y);
  });
}

}  // namespace tessera

#endif
