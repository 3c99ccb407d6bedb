#include <cmath>

#include "engine/core/device.h"
#include "engine/cuda/items.h"
#include "engine/optim/statistics_kernels.h"

namespace tessera {

template <>
template <class T>
void StatisticsKernels<Cuda>::copy(const StatisticsItem<T>* items, int64_t count, const double* norm) {
  const Items<StatisticsItem<T>> all(items, count, TableKind::constant);
  for_items(all, [=] __device__(const StatisticsItem<T>& item, int64_t i) {
    if (!norm || static_cast<bool>(std::isfinite(*norm)) == item.when_taken) item.to[i] = item.from[i];
  });
}

template void StatisticsKernels<Cuda>::copy(const StatisticsItem<float>*, int64_t, const double*);
template void StatisticsKernels<Cuda>::copy(const StatisticsItem<double>*, int64_t, const double*);

}  // namespace tessera
