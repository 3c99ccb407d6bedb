#include <algorithm>
#include <cmath>

#include "engine/core/device.h"
#include "engine/optim/statistics_kernels.h"

namespace tessera {

// A few hundred short arrays are not worth a parallel loop.
template <>
template <class T>
void StatisticsKernels<Cpu>::copy(const StatisticsItem<T>* items, int64_t count, const double* norm) {
  for (const StatisticsItem<T>* item = items; item < items + count; ++item)
    if (!norm || std::isfinite(*norm) == item->when_taken) std::copy_n(item->from, item->n, item->to);
}

template void StatisticsKernels<Cpu>::copy(const StatisticsItem<float>*, int64_t, const double*);
template void StatisticsKernels<Cpu>::copy(const StatisticsItem<double>*, int64_t, const double*);

}  // namespace tessera
