#include <cmath>

#include "engine/core/device.h"
#include "engine/cuda/items.h"
#include "engine/optim/ema_kernels.h"

namespace tessera {

template <>
template <class T>
void EmaKernels<Cuda>::update(const EmaItem<T>* items, int64_t count, T rest, const double* norm) {
  const Items<EmaItem<T>> all(items, count, TableKind::constant);
  for_items(all, [=] __device__(const EmaItem<T>& item, int64_t i) {
    if (norm && !std::isfinite(*norm)) return;
    item.e[i] += rest * (item.p[i] - item.e[i]);
  });
}

template void EmaKernels<Cuda>::update(const EmaItem<float>*, int64_t, float, const double*);
template void EmaKernels<Cuda>::update(const EmaItem<double>*, int64_t, double, const double*);

}  // namespace tessera
