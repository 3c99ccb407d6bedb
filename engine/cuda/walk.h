#pragma once

// Maps over strided arrays, as a Walk (engine/cpu/walk.h) describes them: broadcasting and permuted copies.

#include <array>
#include <limits>
#include <tuple>

#include "engine/cuda/launch.h"

namespace tessera {

namespace walk_detail {

template <class Walk>
inline constexpr int arrays_of = static_cast<int>(std::tuple_size_v<decltype(Walk::stride)>);

// The offsets of a step in all arrays, as Walk::at computes them, but with divisions in Index: those of 64
// bits are several times slower than those of 32.
template <class Index, class Walk>
__device__ inline std::array<int64_t, arrays_of<Walk>> place(const Walk& walk, int64_t step) {
  constexpr int Arrays = arrays_of<Walk>;
  std::array<int64_t, Arrays> offset{};
  Index index = static_cast<Index>(step);
  for (int i = walk.rank - 1; i >= 0; --i) {
    const Index size = static_cast<Index>(walk.size[i]), outer = i == 0 ? 0 : index / size;
    const int64_t entry = static_cast<int64_t>(index - outer * size);
    for (int k = 0; k < Arrays; ++k) offset[k] += entry * walk.stride[k][i];
    index = outer;
  }
  return offset;
}

// Loads V numbers, `stride` apart; as one pack if the stride is 1.
template <int V, class T> __device__ inline Pack<T, V> load(const T* from, int64_t stride) {
  if (stride == 1) return load_pack<V>(from);
  Pack<T, V> pack;
#pragma unroll
  for (int k = 0; k < V; ++k) pack.at[k] = from[k * stride];
  return pack;
}

template <int V, class Index, class Walk, class T, class F, class... X>
__global__ void run(Walk walk, int64_t n, F f, T* y, bool add, const X*... x) {
  wait_for_previous_kernel();
  using W = Wide<T>;
  constexpr int Arrays = arrays_of<Walk>;
  const int last = walk.rank > 0 ? walk.rank - 1 : 0;
  const int64_t step_y = walk.stride[Arrays - 1][last];
  for (int64_t p = grid_thread(); p < n / V; p += grid_threads()) {
    const auto at = place<Index>(walk, p * V);
    T* to = y + at[Arrays - 1];
    int array = 0;
    const auto apply = [&](const auto&... in) {
      Pack<T, V> out;
      if (add) out = load<V>(to, step_y);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const W value = f(Wide<X>(in.at[k])...);
        out.at[k] = T(add ? W(out.at[k]) + value : value);
      }
      if (V > 1) {
        store_pack<V>(to, out);
      } else {
        *to = out.at[0];
      }
    };
    const auto next = [&](const auto* from) {
      const int k = array++;
      return load<V>(from + at[k], walk.stride[k][last]);
    };
    if constexpr (sizeof...(X) == 1) {
      apply(next(x)...);
    } else {  // in order: the braces fix it
      const std::array<Pack<T, V>, sizeof...(X)> in{next(x)...};
      apply(in[0], in[1]);
    }
  }
}

// Whether the innermost axis can be cut into packs of v numbers: y must be contiguous there; an x that is not
// is read number by number.
template <class Walk> bool in_packs(const Walk& walk, int v) {
  constexpr int Arrays = arrays_of<Walk>;
  if (walk.rank == 0) return false;
  const size_t last = static_cast<size_t>(walk.rank) - 1;
  if (walk.size[last] % v != 0 || walk.stride[Arrays - 1][last] != 1) return false;
  for (int k = 0; k < Arrays; ++k) {
    if (walk.stride[k][last] != 1) continue;  // read one by one
    for (size_t i = 0; i < last; ++i)
      if (walk.stride[k][i] % v != 0) return false;
  }
  return true;
}

}  // namespace walk_detail

// y = f(x1) or f(x1, x2), or += if add, at every step of the walk through x1, x2 and y, computed in Wide
// types. No element of y may come twice.
template <class Walk, class T, class F, class... X>
void walk_map(const Walk& walk, T* y, bool add, const F& f, const X*... x) {
  constexpr int Arrays = walk_detail::arrays_of<Walk>;
  static_assert(sizeof...(X) + 1 == Arrays && Arrays <= 3);
  const int64_t n = walk.elements(walk.rank);
  if (n == 0) return;
  constexpr int v = pack_of<T>;
  const bool packed = walk_detail::in_packs(walk, v) && aligned(y, v) && (aligned(x, v) && ...);
  const bool small = n < std::numeric_limits<int32_t>::max();
  const auto start = [&](auto* kernel, int64_t threads) {
    launch(kernel, grid_for(threads), walk, n, f, y, add, x...);
  };
  if (packed && small)
    start(walk_detail::run<v, uint32_t, Walk, T, F, X...>, n / v);
  else if (packed)
    start(walk_detail::run<v, uint64_t, Walk, T, F, X...>, n / v);
  else if (small)
    start(walk_detail::run<1, uint32_t, Walk, T, F, X...>, n);
  else
    start(walk_detail::run<1, uint64_t, Walk, T, F, X...>, n);
}

}  // namespace tessera
