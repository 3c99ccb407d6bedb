#pragma once

// How every kernel of this backend is written and launched:
//
// - A kernel walks its work in a grid-stride loop, so that any grid is right. launch() starts it, not <<<>>>.
// - It begins with wait_for_previous_kernel(), because from compute capability 9.0 on it is launched while
// the
//   previous kernel ends.
// - Offsets have 64 bits. A thread of a memory-bound kernel moves 16 bytes in one access (Pack).
// - All work runs on one stream, in a captured step also on a Branch (side_stream.h). An op does not
//   synchronise with the host. It passes constants of the host by value, and numbers that change from step to
//   step in device memory (graph.h: random keys by DrawKey, tables such as learning rates by Table), so that
//   every op can be captured into a graph and replayed. Checks of numbers on the device (labels, indices) are
//   skipped while Graph::capturing().
// - No floating-point atomics. Sums run in an order that the sizes alone fix: a thread's own part, then
//   warp_sum and block_sum (reduce.h), then parts in scratch memory (Scratch), added in their order.
// - Arithmetic and sums run in Wide<T>; the formulas are the TESSERA_HD functions of _kernels.h.
// - Inline assembly stays in engine/cuda (except for the rounding to bf16 in engine/core/dtype.h); static
//   __shared__ arrays have plain types; dynamic ones come from shared_memory<T>(). So a host compiler can
//   compile the kernels too and run them thread by thread without a GPU (tests/emulator).

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "engine/core/dtype.h"
#include "engine/core/scratch.h"
#include "engine/cuda/graph.h"
#include "engine/cuda/stream.h"

namespace tessera {

inline constexpr int warp = 32;
inline constexpr int block_threads = 256;  // unless a kernel has a reason for another number

struct LaunchGrid {
  dim3 blocks;
  dim3 threads = dim3(block_threads);
  size_t shared_bytes = 0;  // dynamic
};

// A grid with a thread for each of n items, limited to what the GPU can hold at a time; the kernel strides
// over the rest.
inline LaunchGrid grid_for(int64_t n, int threads = block_threads) {
  const int64_t most = int64_t{gpu().multiprocessors} * (2048 / threads);
  const int64_t blocks = std::clamp<int64_t>((n + threads - 1) / threads, 1, most);
  return {dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads))};
}

// Comes first in every kernel. Waits until all kernels before this one are done and their writes are visible,
// then lets the next kernel be launched (programmatic dependent launch; see the CUDA programming guide),
// unless the build defines TESSERA_NO_TRIGGER. TESSERA_SLOW_KERNELS lengthens every kernel; both are to find
// faults. Because the wait comes first, a kernel that has ended is one whose predecessors have all ended: a
// kernel that waits for it may read what any of them wrote. cuBLASLt's kernels, which may start early
// themselves, keep this rule.
__device__ inline void wait_for_previous_kernel() {
#if defined(TESSERA_CUDA_EMULATED)
  emulator::wait_for_previous_kernel();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#ifndef TESSERA_NO_TRIGGER
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
#ifdef TESSERA_SLOW_KERNELS
  __nanosleep(20000);  // a next kernel that does not wait now runs before this one has written anything
#endif
#endif
}

// Launches the kernel on the stream. While a graph's tables are refreshed it does nothing, because the graph
// has the kernel already.
template <class... P, class... A>
void launch(void (*kernel)(P...), const LaunchGrid& grid, A&&... arguments) {
  if (Graph::refreshing()) return;
  if (grid.shared_bytes > 32 << 10)  // 48 KB need no permission, but static arrays take a part of them
    allow_shared(reinterpret_cast<const void*>(kernel), grid.shared_bytes);
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream();
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &early;
  config.numAttrs = may_start_early() ? 1 : 0;
  expect(cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...), "kernel");
  if (gpu().one_by_one) wait_for_kernel(reinterpret_cast<const void*>(kernel));
}

// The dynamic shared memory of a block, aligned to 16 bytes.
template <class T> __device__ inline T* shared_memory() {
#ifdef TESSERA_CUDA_EMULATED
  return static_cast<T*>(emulator::dynamic_shared());
#else
  extern __shared__ __align__(16) unsigned char tessera_dynamic_shared[];
  return reinterpret_cast<T*>(tessera_dynamic_shared);
#endif
}

// This thread's index in a one-dimensional grid, and the number of the grid's threads.
__device__ inline int64_t grid_thread() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline int64_t grid_threads() { return int64_t{gridDim.x} * blockDim.x; }

// This thread's lane in its warp, and its warp in a one-dimensional block. Unsigned division is a shift here.
__device__ inline int own_lane() { return static_cast<int>(threadIdx.x % warp); }
__device__ inline int own_warp() { return static_cast<int>(threadIdx.x / warp); }

// V numbers that are loaded or stored in one access.
template <class T, int V> struct alignas(sizeof(T) * V) Pack { T at[V]; };

// How many T 16 bytes hold.
template <class T> inline constexpr int pack_of = 16 / static_cast<int>(sizeof(T));

template <int V, class T> __device__ inline Pack<T, V> load_pack(const T* from) {
#ifdef TESSERA_CUDA_EMULATED
  emulator::expect_aligned(from, sizeof(Pack<T, V>));
#endif
  return *reinterpret_cast<const Pack<T, V>*>(from);
}
template <int V, class T> __device__ inline void store_pack(T* to, const Pack<T, V>& pack) {
#ifdef TESSERA_CUDA_EMULATED
  emulator::expect_aligned(to, sizeof(Pack<T, V>));
#endif
  *reinterpret_cast<Pack<T, V>*>(to) = pack;
}

template <class T> inline bool aligned(const T* pointer, int v) {
  return reinterpret_cast<uintptr_t>(pointer) % (sizeof(T) * static_cast<size_t>(v)) == 0;
}

// Device memory for intermediate values of an op. It goes back to the pool when the op returns, although
// kernels may still use it: later kernels that get the same memory run after them on the stream.
template <class T> using Scratch = Workspace<T, Device::cuda>;

// --- maps: y[i] = f(i, x1[i], x2[i], ...) ---

namespace map_detail {

// One pack of V elements from i on.
template <int V, class T, class F, class... X>
__device__ inline void step(int64_t i, const F& f, T* y, bool add, const X*... x) {
  using W = Wide<T>;
  Pack<T, V> out;
  if (add) out = load_pack<V>(y + i);
  const auto apply = [&](const auto&... in) {
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const W value = f(i + k, Wide<X>(in.at[k])...);
      out.at[k] = T(add ? W(out.at[k]) + value : value);
    }
  };
  apply(load_pack<V>(x + i)...);
  store_pack<V>(y + i, out);
}

template <int V, class T, class F, class... X>
__global__ void run(int64_t n, F f, T* y, bool add, const X*... x) {
  wait_for_previous_kernel();
  const int64_t packs = n / V;
  for (int64_t p = grid_thread(); p < packs; p += grid_threads()) step<V>(p * V, f, y, add, x...);
  if constexpr (V > 1)
    for (int64_t i = packs * V + grid_thread(); i < n; i += grid_threads()) step<1>(i, f, y, add, x...);
}

}  // namespace map_detail

// y[i] = f(i, x1[i], ...) for n elements, or += if add, computed in Wide types. y may be one of the x. F is a
// struct or a [=] __device__ lambda that is made in a named function (nvcc accepts none in a generic lambda).
template <class T, class F, class... X> void map(int64_t n, T* y, bool add, const F& f, const X*... x) {
  if (n == 0) return;
  constexpr int v = std::min({pack_of<T>, pack_of<X>...});
  const bool packed = aligned(y, v) && (aligned(x, v) && ...);
  if (packed)
    launch(map_detail::run<v, T, F, X...>, grid_for((n + v - 1) / v), n, f, y, add, x...);
  else
    launch(map_detail::run<1, T, F, X...>, grid_for(n), n, f, y, add, x...);
}

}  // namespace tessera
