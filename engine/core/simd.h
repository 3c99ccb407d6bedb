#pragma once

// Vectors as wide as the processor's registers, by the compilers' vector extension: +, * and the rest work
// lane by lane. For the few loops that must say which values stay in registers; others leave it to "omp
// simd".

#include <cstdint>
#include <cstring>
#include <utility>

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

template <class W> struct VectorOf { typedef W type __attribute__((vector_size(vector_bytes))); };
template <class W> using Vector = typename VectorOf<W>::type;

template <class W> inline constexpr int64_t lanes = vector_bytes / static_cast<int64_t>(sizeof(W));

// n made a multiple of the lanes.
template <class W> constexpr int64_t whole_vectors(int64_t n) {
  return (n + lanes<W> - 1) / lanes<W> * lanes<W>;
}

template <class W> inline Vector<W> load_vector(const W* from) {
  Vector<W> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class W> inline void store_vector(W* to, const Vector<W>& v) { std::memcpy(to, &v, sizeof v); }

namespace detail {

// The lanes of a and b in turn: a0 b0 a1 b1 ... from their lower or their upper halves.
template <class W, int first, size_t... i>
inline Vector<W> interleave(const Vector<W>& a, const Vector<W>& b, std::index_sequence<i...>) {
  return __builtin_shufflevector(a, b, (first + static_cast<int>(i / 2) + (i % 2 ? int{lanes<W>} : 0))...);
}

}  // namespace detail

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
