#include <cmath>

#include "engine/core/device.h"
#include "engine/cuda/items.h"
#include "engine/optim/sgd_kernels.h"

namespace tessera {

template <>
template <class T>
void SgdKernels<Cuda>::step(const SgdItem<T>* items, int64_t count, T momentum, bool nesterov,
                            const double* norm) {
  const Items<SgdItem<T>> all(items, count);
  for_items(all, [=] __device__(const SgdItem<T>& item, int64_t i) {
    if (norm && !std::isfinite(*norm)) return;
    sgd_update(item, i, momentum, nesterov);
  });
}

template void SgdKernels<Cuda>::step(const SgdItem<float>*, int64_t, float, bool, const double*);
template void SgdKernels<Cuda>::step(const SgdItem<double>*, int64_t, double, bool, const double*);

}  // namespace tessera
