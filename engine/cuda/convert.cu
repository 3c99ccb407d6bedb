#include "engine/core/convert_kernels.h"

#include "engine/cuda/launch.h"
#include "engine/cuda/parts.h"

namespace tessera {

namespace {

template <class To, class From> __global__ void convert(int64_t n, const From* from, To* to) {
  wait_for_previous_kernel();
  constexpr int v = std::min(pack_of<From>, pack_of<To>);
  const int64_t packs = n / v;
  for (int64_t p = grid_thread(); p < packs; p += grid_threads()) {
    const auto in = load_pack<v>(from + p * v);
    Pack<To, v> out;
#pragma unroll
    for (int k = 0; k < v; ++k) out.at[k] = converted<To>(in.at[k]);
    store_pack<v>(to + p * v, out);
  }
  for (int64_t i = packs * v + grid_thread(); i < n; i += grid_threads()) to[i] = converted<To>(from[i]);
}

// For arrays that are not aligned to packs.
template <class To, class From> __global__ void convert_singly(int64_t n, const From* from, To* to) {
  wait_for_previous_kernel();
  for (int64_t i = grid_thread(); i < n; i += grid_threads()) to[i] = converted<To>(from[i]);
}

template <class T> __global__ void fill(int64_t n, T value, T* to) {
  wait_for_previous_kernel();
  for (int64_t i = grid_thread(); i < n; i += grid_threads()) to[i] = value;
}

}  // namespace

bool kernels_wait_for_previous() {
  cudaFuncAttributes code{};
  expect(cudaFuncGetAttributes(&code, fill<float>), "device");
  return code.ptxVersion >= 90;
}

void convert_on_cuda(int64_t n, DType from_type, const void* from, DType to_type, void* to) {
  if (n == 0) return;
  with_type(from_type, [&]<class From>() {
    with_type(to_type, [&]<class To>() {
      const From* x = static_cast<const From*>(from);
      To* y = static_cast<To*>(to);
      const int v = std::min(pack_of<From>, pack_of<To>);
      const bool packed = aligned(x, v) && aligned(y, v);
      launch(packed ? convert<To, From> : convert_singly<To, From>, grid_for(packed ? n / v + 1 : n), n, x,
             y);
    });
  });
}

void fill_on_cuda(int64_t n, double value, DType type, void* to) {
  if (n == 0) return;
  with_type(type,
            [&]<class T>() { launch(fill<T>, grid_for(n), n, converted<T>(value), static_cast<T*>(to)); });
}

}  // namespace tessera
