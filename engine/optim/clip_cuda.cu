#include <cmath>

#include "engine/core/device_backend.h"
#include "engine/core/dispatch.h"
#include "engine/cuda/items.h"
#include "engine/optim/clip_kernels.h"

namespace tessera {

namespace {

// norm = sqrt(sum of parts), by one block. Each thread sums its parts in their order.
__global__ void root_of_sum(int64_t count, const double* parts, double largest, double* norm) {
  wait_for_previous_kernel();
  double own = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) own += parts[i];
  own = block_sum(own);
  if (threadIdx.x != 0) return;
  set_norm(sqrt(own), largest, norm);
}

template <class T> void norm_of(const Items<ClipItem<T>>& items, double largest, double* norm) {
  const Scratch<double> parts(std::max<int64_t>(items.chunks(), 1));
  sum_items(
      items,
      [] __device__(const ClipItem<T>& item, int64_t i) {
        const double x = double(Wide<T>(item.g[i]));
        return x * x;
      },
      parts.data());
  launch(root_of_sum, LaunchGrid{dim3(1)}, items.chunks(), parts.data(), largest, norm);
}

}  // namespace

template <> template <class T> double ClipKernels<Cuda>::squares(const ClipItem<T>* items, int64_t count) {
  const Scratch<double> norm(3);
  norm_of(Items<ClipItem<T>>(items, count), INFINITY, norm.data());
  double root = 0;
  backend(Device::cuda).copy_to_host(&root, norm.data(), sizeof root);
  return root * root;
}

template <>
template <class T>
void ClipKernels<Cuda>::scale(const ClipItem<T>* items, int64_t count, double factor) {
  const Items<ClipItem<T>> all(items, count);
  for_items(all, [f = Wide<T>(factor)] __device__(const ClipItem<T>& item, int64_t i) {
    item.g[i] = T(Wide<T>(item.g[i]) * f);
  });
}

template <>
template <class T>
void ClipKernels<Cuda>::clip(const ClipItem<T>* items, int64_t count, double max_norm, double largest,
                             double* norm) {
  const Items<ClipItem<T>> all(items, count, TableKind::constant);
  norm_of(all, largest, norm);
  if (max_norm > 0)
    for_items(all, [=] __device__(const ClipItem<T>& item, int64_t i) {
      if (std::isfinite(*norm) && *norm > max_norm)
        item.g[i] = T(Wide<T>(item.g[i]) * Wide<T>(max_norm / *norm));
    });
}

TESSERA_FOR_FLOATS(ClipKernels<Cuda>::squares)
TESSERA_FOR_FLOATS(ClipKernels<Cuda>::scale)
TESSERA_FOR_FLOATS(ClipKernels<Cuda>::clip)

}  // namespace tessera
