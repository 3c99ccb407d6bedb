#pragma once

// Vectors as wide as the processor's registers, by the compilers' vector extension: +, * and so on work lane
// by lane. They serve the few loops that must decide which values stay in registers; other loops use "omp
// simd".

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#ifdef __AVX__
#include <immintrin.h>
#endif

namespace tessera {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64, vector_registers = 32;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32, vector_registers = 16;
#elif defined(__aarch64__)
inline constexpr int vector_bytes = 16, vector_registers = 32;
#else
inline constexpr int vector_bytes = 16, vector_registers = 16;
#endif

template <class W> struct VectorOf {
  typedef W type __attribute__((vector_size(vector_bytes)));
  // The vector in memory, at any address, as numbers.
  typedef W unaligned __attribute__((vector_size(vector_bytes), aligned(alignof(W)), may_alias));
};
template <class W> using Vector = typename VectorOf<W>::type;

template <class W> inline constexpr int64_t lanes = vector_bytes / static_cast<int64_t>(sizeof(W));

// n rounded up to a multiple of the lanes.
template <class W> constexpr int64_t whole_vectors(int64_t n) {
  return (n + lanes<W> - 1) / lanes<W> * lanes<W>;
}

template <class W> inline Vector<W> load_vector(const W* from) {
  return *reinterpret_cast<const typename VectorOf<W>::unaligned*>(from);
}

template <class W> inline void store_vector(W* to, const Vector<W>& v) {
  *reinterpret_cast<typename VectorOf<W>::unaligned*>(to) = v;
}

namespace detail {

// Lane i of the result is lane i + half of v, for i < half; the other lanes are arbitrary.
template <class W, int half, size_t... i>
inline Vector<W> upper_half(const Vector<W>& v, std::index_sequence<i...>) {
  return __builtin_shufflevector(
      v, v, (static_cast<int>(i) < half ? static_cast<int>(i) + half : static_cast<int>(i))...);
}

// Reduces the first 2 * half lanes with f, halving their number until `kept` are left, the first ones.
template <class W, int half, int kept, class F> inline Vector<W> fold(const Vector<W>& v, F f) {
  if constexpr (half < kept)
    return v;
  else
    return fold<W, half / 2, kept>(
        f(v, upper_half<W, half>(v, std::make_index_sequence<static_cast<size_t>(lanes<W>)>())), f);
}

// The lanes of a and b alternating, a0 b0 a1 b1 ..., from their lower or upper halves.
template <class W, int first, size_t... i>
inline Vector<W> interleave(const Vector<W>& a, const Vector<W>& b, std::index_sequence<i...>) {
  return __builtin_shufflevector(a, b, (first + static_cast<int>(i / 2) + (i % 2 ? int{lanes<W>} : 0))...);
}

// The function folds the lanes of a with f, and those of b: both vectors share the steps.
template <class W, class F> inline std::array<W, 2> fold_two(const Vector<W>& a, const Vector<W>& b, F f) {
  constexpr auto order = std::make_index_sequence<static_cast<size_t>(lanes<W>)>();
  const Vector<W> alternating = f(interleave<W, 0>(a, b, order), interleave<W, lanes<W> / 2>(a, b, order));
  const Vector<W> folded = fold<W, lanes<W> / 2, 2>(alternating, f);
  return {folded[0], folded[1]};
}

}  // namespace detail

// The larger of each lane; b where either is NaN. Of the plain expression g++ makes two instructions, a
// comparison and a choice, where the processor has one.
template <class W> inline Vector<W> largest(const Vector<W>& a, const Vector<W>& b) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<W, float>) return _mm512_maskz_max_ps(__mmask16{0xffff}, a, b);
#elif defined(__AVX__)
  if constexpr (std::is_same_v<W, float>) return _mm256_max_ps(a, b);
#endif
  return a > b ? a : b;
}

template <class W> inline W sum_of_lanes(const Vector<W>& v) {
  return detail::fold<W, lanes<W> / 2, 1>(v, [](const auto& a, const auto& b) { return a + b; })[0];
}
template <class W> inline W largest_of_lanes(const Vector<W>& v) {
  return detail::fold<W, lanes<W> / 2, 1>(v,
                                          [](const auto& a, const auto& b) { return largest<W>(a, b); })[0];
}

// These two return what the functions above make of a, and of b: both vectors share the steps.
template <class W> inline std::array<W, 2> sums_of_lanes(const Vector<W>& a, const Vector<W>& b) {
  return detail::fold_two<W>(a, b, [](const auto& x, const auto& y) { return x + y; });
}
template <class W> inline std::array<W, 2> largest_of_lanes(const Vector<W>& a, const Vector<W>& b) {
  return detail::fold_two<W>(a, b, [](const auto& x, const auto& y) { return largest<W>(x, y); });
}

// to[j][i] = factor * from[i][j] for a square of lanes x lanes; strides between rows in elements.
template <class W>
inline void transpose_square(W factor, const W* from, int64_t from_stride, W* to, int64_t to_stride) {
  constexpr int n = lanes<W>;
  constexpr auto order = std::make_index_sequence<static_cast<size_t>(n)>();
  Vector<W> rows[n];
  for (int i = 0; i < n; ++i) rows[i] = factor * load_vector(from + i * from_stride);
  for (int round = 1; round < n; round *= 2) {  // perfect shuffles: log2(n) of them transpose
    Vector<W> shuffled[n];
    for (int i = 0; i < n / 2; ++i) {
      shuffled[2 * i] = detail::interleave<W, 0>(rows[i], rows[i + n / 2], order);
      shuffled[2 * i + 1] = detail::interleave<W, n / 2>(rows[i], rows[i + n / 2], order);
    }
    for (int i = 0; i < n; ++i) rows[i] = shuffled[i];
  }
  for (int i = 0; i < n; ++i) store_vector(to + i * to_stride, rows[i]);
}

}  // namespace tessera
