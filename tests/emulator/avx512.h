#pragma once

// These functions compute what the instructions of AVX-512 and AVX-512-BF16 do that our kernels use, as the
// processors' manuals define them, by GCC's vectors and instructions of AVX2; avx512_kernels.h puts them into
// the kernels. Like the kernels' files this header includes no inline function that the linker could take for
// others' use.

#include <immintrin.h>

#include <cstdint>

#include "tests/emulator/bf16_kernels.h"

namespace emulated {

using Floats = __m512;
using Numbers = __m512i;
typedef uint32_t Words __attribute__((vector_size(64)));
typedef int32_t Mask __attribute__((vector_size(64)));  // of a comparison: all bits of a lane, or none
typedef int64_t Longs __attribute__((vector_size(64)));
typedef int16_t Shorts __attribute__((vector_size(64)));

#define EMULATED [[gnu::always_inline]] static inline
#define EMULATED_CALL [[gnu::noinline, maybe_unused]] static  // long, and in loops that the kernels unroll

template <class To, class From> EMULATED To bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

struct Halves {
  __m256 low, high;
};

template <class T> EMULATED T load(const void* from) {
  T vector;
  __builtin_memcpy(&vector, from, sizeof vector);
  return vector;
}
template <class T> EMULATED void store(void* to, T vector) { __builtin_memcpy(to, &vector, sizeof vector); }

// Instructions that want an aligned address fail for another.
template <class T> EMULATED T load_aligned(const void* from) {
  require(reinterpret_cast<uintptr_t>(from) % sizeof(T) == 0, "an aligned load from another address");
  return load<T>(from);
}

// The functions touch the wanted numbers alone, as the processor does.
template <class T, class Lane> EMULATED T load_wanted(uint32_t wanted, const void* from) {
  Lane lanes[sizeof(T) / sizeof(Lane)] = {};
  for (unsigned i = 0; i < sizeof(T) / sizeof(Lane); ++i)
    if (wanted >> i & 1) lanes[i] = load<Lane>(static_cast<const Lane*>(from) + i);
  return bits<T>(lanes);
}
template <class Lane, class T> EMULATED void store_wanted(void* to, uint32_t wanted, T vector) {
  for (unsigned i = 0; i < sizeof(T) / sizeof(Lane); ++i)
    if (wanted >> i & 1)
      __builtin_memcpy(static_cast<Lane*>(to) + i, reinterpret_cast<const char*>(&vector) + i * sizeof(Lane),
                       sizeof(Lane));
}

EMULATED Floats set1_ps(float x) { return Floats{} + x; }
EMULATED Numbers set1_epi32(int32_t x) { return bits<Numbers>(Words{} + static_cast<uint32_t>(x)); }
EMULATED Numbers set1_epi16(int16_t x) { return bits<Numbers>(Shorts{} + x); }
template <class... Lanes> EMULATED Numbers set_epi16(Lanes... last_to_first) {
  const int16_t numbers[] = {static_cast<int16_t>(last_to_first)...};
  static_assert(sizeof numbers == 64);
  Shorts lanes;
  for (unsigned i = 0; i < 32; ++i) lanes[i] = numbers[31 - i];
  return bits<Numbers>(lanes);
}

EMULATED Floats mul_ps(Floats a, Floats b) { return a * b; }
EMULATED Floats add_ps(Floats a, Floats b) { return a + b; }
EMULATED Floats fmadd_ps(Floats a, Floats b, Floats c) {
  const auto x = bits<Halves>(a), y = bits<Halves>(b), z = bits<Halves>(c);
  return bits<Floats>(Halves{_mm256_fmadd_ps(x.low, y.low, z.low), _mm256_fmadd_ps(x.high, y.high, z.high)});
}
EMULATED Floats max_ps(Floats a, Floats b) {
  const auto x = bits<Halves>(a), y = bits<Halves>(b);
  return bits<Floats>(Halves{_mm256_max_ps(x.low, y.low), _mm256_max_ps(x.high, y.high)});
}
EMULATED Floats abs_ps(Floats x) { return bits<Floats>(bits<Words>(x) & 0x7fffffffu); }

EMULATED Floats sqrt_ps(Floats x) {
  const auto from = bits<Halves>(x);
  return bits<Floats>(Halves{_mm256_sqrt_ps(from.low), _mm256_sqrt_ps(from.high)});
}

EMULATED float reduce_add_ps(Floats x) {
  float sum = 0;
  for (int i = 0; i < 16; ++i) sum += x[i];
  return sum;
}
EMULATED float reduce_max_ps(Floats x) {
  float most = x[0];
  for (int i = 1; i < 16; ++i) most = most > x[i] ? most : x[i];
  return most;
}

// x - floor(x), and zero for an infinity.
template <int control> EMULATED Floats reduce_ps(Floats x) {
  static_assert(control == (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC), "the whole part below x alone");
  const auto from = bits<Halves>(x);
  const Floats fraction = x - bits<Floats>(Halves{_mm256_floor_ps(from.low), _mm256_floor_ps(from.high)});
  const Mask infinite = bits<Words>(abs_ps(x)) == 0x7f800000u;
  return bits<Floats>(bits<Mask>(fraction) & ~infinite);
}

// a 2^floor(b)
EMULATED_CALL Floats scalef_ps(Floats a, Floats b) {
  Floats result;
  for (int i = 0; i < 16; ++i) {
    const float power = b[i] < -400 ? -400 : b[i] > 400 ? 400 : __builtin_floorf(b[i]);
    result[i] = __builtin_isnan(b[i]) ? b[i] : __builtin_ldexpf(a[i], static_cast<int>(power));
  }
  return result;
}

EMULATED Floats chosen(uint32_t wanted, Floats where, Floats otherwise) {
  for (unsigned i = 0; i < 16; ++i)
    if (wanted >> i & 1) otherwise[i] = where[i];
  return otherwise;
}
EMULATED Floats mask_mov_ps(Floats a, __mmask16 wanted, Floats b) { return chosen(wanted, b, a); }
EMULATED Floats maskz_mov_ps(__mmask16 wanted, Floats a) { return chosen(wanted, a, Floats{}); }
EMULATED Floats maskz_sub_ps(__mmask16 wanted, Floats a, Floats b) { return chosen(wanted, a - b, Floats{}); }
EMULATED __mmask16 signs(Mask lanes) {
  uint32_t set = 0;
  for (unsigned i = 0; i < 16; ++i) set |= (lanes[i] < 0 ? 1u : 0u) << i;
  return static_cast<__mmask16>(set);
}
EMULATED __mmask16 movepi32_mask(Numbers x) { return signs(bits<Mask>(x)); }
template <int comparison> EMULATED __mmask16 cmp_ps_mask(Floats a, Floats b) {
  static_assert(comparison == _CMP_GT_OQ, "only > is here");
  return signs(a > b);
}

EMULATED Numbers or_si512(Numbers a, Numbers b) { return a | b; }
EMULATED Numbers and_si512(Numbers a, Numbers b) { return a & b; }
EMULATED Numbers add_epi16(Numbers a, Numbers b) { return bits<Numbers>(bits<Shorts>(a) + bits<Shorts>(b)); }
template <int places> EMULATED Numbers slli_epi32(Numbers x) {
  return bits<Numbers>(bits<Words>(x) << places);
}
EMULATED Numbers cvtepu16_epi32(__m256i x) {
  struct {
    __m256i low, high;
  } const words{_mm256_cvtepu16_epi32(_mm256_castsi256_si128(x)),
                _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x, 1))};
  return bits<Numbers>(words);
}

EMULATED Numbers permutex2var_epi16(Numbers a, Numbers order, Numbers b) {
  return bits<Numbers>(__builtin_shuffle(bits<Shorts>(a), bits<Shorts>(b), bits<Shorts>(order)));
}
EMULATED Numbers permutexvar_epi16(Numbers order, Numbers x) {
  return bits<Numbers>(__builtin_shuffle(bits<Shorts>(x), bits<Shorts>(order)));
}
template <int first> EMULATED Numbers unpack_epi32(Numbers a, Numbers b) {  // within each quarter
  constexpr Mask order{first,      first + 16, first + 1,  first + 17, first + 4, first + 20,
                       first + 5,  first + 21, first + 8,  first + 24, first + 9, first + 25,
                       first + 12, first + 28, first + 13, first + 29};
  return bits<Numbers>(__builtin_shuffle(bits<Mask>(a), bits<Mask>(b), order));
}
template <long first> EMULATED Numbers unpack_epi64(Numbers a, Numbers b) {
  constexpr Longs order{first,     first + 8,  first + 2, first + 10,
                        first + 4, first + 12, first + 6, first + 14};
  return bits<Numbers>(__builtin_shuffle(bits<Longs>(a), bits<Longs>(b), order));
}
template <int control> EMULATED Numbers shuffle_i32x4(Numbers a, Numbers b) {
  struct Quarters {
    __m128i at[4];
  };
  const auto x = bits<Quarters>(a), y = bits<Quarters>(b);
  return bits<Numbers>(
      Quarters{{x.at[control & 3], x.at[control >> 2 & 3], y.at[control >> 4 & 3], y.at[control >> 6 & 3]}});
}

struct IntegerHalves {
  __m256i at[2];
};
template <int half> EMULATED __m256i extracti64x4_epi64(Numbers x) { return bits<IntegerHalves>(x).at[half]; }
template <int half> EMULATED Numbers inserti64x4(Numbers x, __m256i y) {
  auto halves = bits<IntegerHalves>(x);
  halves.at[half] = y;
  return bits<Numbers>(halves);
}
EMULATED __m256i castsi512_si256(Numbers x) { return bits<IntegerHalves>(x).at[0]; }
EMULATED Numbers castsi256_si512(__m256i x) {  // what the upper half holds is not defined: here NaN
  return bits<Numbers>(IntegerHalves{{x, _mm256_set1_epi16(0x7fc1)}});
}

// A float of which the exponent is zero counts as zero, in all that follows.
EMULATED Floats flushed(Floats x) {
  const Mask normal = (bits<Words>(x) & 0x7f800000u) != 0u;
  return bits<Floats>(bits<Words>(x) & (bits<Words>(normal) | 0x80000000u));
}
EMULATED Floats upper(__m512bh x) { return flushed(bits<Floats>(bits<Words>(x) & 0xffff0000u)); }
EMULATED Floats lower(__m512bh x) { return flushed(bits<Floats>(bits<Words>(x) << 16)); }

// sum + a b for each of the two bf16 numbers in a lane, the upper ones first, rounded after each.
EMULATED_CALL Floats dpbf16_ps(Floats sum, __m512bh a, __m512bh b) {
  sum = flushed(fmadd_ps(upper(a), upper(b), flushed(sum)));
  return flushed(fmadd_ps(lower(a), lower(b), sum));
}

// The lower half of each lane gets the number as bf16, rounded to the nearest and ties to even.
EMULATED_CALL Words rounded(Floats x) {
  const Words from = bits<Words>(flushed(x));
  const Words nearest = (from + 0x7fffu + (from >> 16 & 1u)) >> 16, quiet = from >> 16 | 0x40u;
  const Words nan = bits<Words>(Mask((from & 0x7fffffffu) > 0x7f800000u));
  return (quiet & nan) | (nearest & ~nan);
}
EMULATED __m256bh cvtneps_pbh(Floats x) {
  typedef uint16_t Half __attribute__((vector_size(32)));
  return bits<__m256bh>(__builtin_convertvector(rounded(x), Half));
}
EMULATED __m512bh cvtne2ps_pbh(Floats high, Floats low) {
  struct {
    __m256bh low, high;
  } const both{cvtneps_pbh(low), cvtneps_pbh(high)};
  return bits<__m512bh>(both);
}

#undef EMULATED
#undef EMULATED_CALL

}  // namespace emulated
