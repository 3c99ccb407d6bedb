#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/ops/correct_kernels.h"

namespace tessera {

template <>
template <class T>
void CorrectKernels<Cpu>::count(int64_t rows, int64_t classes, const T* x, const int64_t* labels,
                                int64_t* total) {
  *total = parallel_sum<int64_t>(rows, chunk_length(64, classes), [=](int64_t begin, int64_t end) {
    int64_t correct = 0;
    for (int64_t i = begin; i < end; ++i) correct += is_largest(x + i * classes, classes, labels[i]);
    return correct;
  });
}

TESSERA_FOR_FLOATS(CorrectKernels<Cpu>::count)

}  // namespace tessera
