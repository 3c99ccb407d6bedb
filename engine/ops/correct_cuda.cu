#include "engine/core/dispatch.h"
#include "engine/cuda/reduce.h"
#include "engine/ops/correct_kernels.h"

namespace tessera {

namespace {

constexpr int threads = 1024;

// One block.
template <class T>
__global__ void __launch_bounds__(threads)
    count_rows(int64_t rows, int64_t classes, const T* x, const int64_t* labels, int64_t* correct) {
  int own = 0;
  for (int64_t i = threadIdx.x; i < rows; i += blockDim.x)
    own += is_largest(x + i * classes, classes, labels[i]);
  own = block_sum(own);
  if (threadIdx.x == 0) *correct = own;
}

}  // namespace

template <>
template <class T>
void CorrectKernels<Cuda>::count(int64_t rows, int64_t classes, const T* x, const int64_t* labels,
                                 int64_t* correct) {
  launch(count_rows<T>, LaunchGrid{dim3(1), dim3(threads)}, rows, classes, x, labels, correct);
}

TESSERA_FOR_FLOATS(CorrectKernels<Cuda>::count)

}  // namespace tessera
