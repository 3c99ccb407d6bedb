#include <cmath>

#include "engine/core/device.h"
#include "engine/cuda/items.h"
#include "engine/optim/adamw_kernels.h"

namespace tessera {

template <>
template <class T>
void AdamWKernels<Cuda>::step(const AdamWItem<T>* items, int64_t count, const AdamWRates<T>& rates) {
  const Items<AdamWItem<T>> all(items, count);
  for_items(all, [r = rates] __device__(const AdamWItem<T>& item, int64_t i) {
    if (r.norm && !std::isfinite(*r.norm)) return;
    adamw_update(item.p[i], item.g[i], item.m[i], item.v[i], item, r);
  });
}

template void AdamWKernels<Cuda>::step(const AdamWItem<float>*, int64_t, const AdamWRates<float>&);
template void AdamWKernels<Cuda>::step(const AdamWItem<double>*, int64_t, const AdamWRates<double>&);

}  // namespace tessera
