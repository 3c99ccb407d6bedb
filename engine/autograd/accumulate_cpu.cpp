#include "engine/autograd/accumulate_kernels.h"
#include "engine/core/device.h"
#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"

namespace tessera {

template <> template <class T> void AccumulateKernels<Cpu>::add(T* a, const T* b, int64_t n) {
  parallel_for(n, chunk_length(1 << 15), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) a[i] = T(Wide<T>(a[i]) + Wide<T>(b[i]));
  });
}

TESSERA_FOR_FLOATS(AccumulateKernels<Cpu>::add)

}  // namespace tessera
