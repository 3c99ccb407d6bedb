#include "engine/core/dispatch.h"
#include "engine/cuda/rows.h"
#include "engine/ops/correct_kernels.h"

namespace tessera {

namespace {

constexpr int threads = 1024;

// Adds up n counts in one block.
__global__ void __launch_bounds__(threads) sum_counts(int64_t n, const int* counts, int64_t* sum) {
  wait_for_previous_kernel();
  int64_t own = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) own += counts[i];
  own = block_sum(own);
  if (threadIdx.x == 0) *sum = own;
}

}  // namespace

template <>
template <class T>
void CorrectKernels<Cuda>::count(int64_t rows, int64_t classes, const T* x, const int64_t* labels,
                                 int64_t* correct) {
  const Scratch<int> counts(rows);
  int* const right = counts.data();
  each_row(rows, [=] __device__(int64_t i, int lane) {
    const T* row = x + i * classes;
    const int64_t label = labels[i];
    bool beaten = false;
    for (int64_t k = lane; k < classes; k += warp) beaten = beaten || beats(row, classes, k, label);
    const bool any = __ballot_sync(0xffffffffu, beaten) != 0;
    if (lane == 0) right[i] = any ? 0 : 1;
  });
  launch(sum_counts, LaunchGrid{dim3(1), dim3(threads)}, rows, right, correct);
}

TESSERA_FOR_FLOATS(CorrectKernels<Cuda>::count)

}  // namespace tessera
