#include "engine/core/dispatch.h"
#include "engine/cuda/log_sum_exp.h"
#include "engine/ops/softmax_kernels.h"

namespace tessera {

template <> template <class T> void SoftmaxKernels<Cuda>::forward(bool log, RowsSize size, const T* x, T* y) {
  using W = Wide<T>;
  const int64_t rows = size.rows, width = size.width;
  each_row(rows, [=] __device__(int64_t i, int lane) {
    const T* row = x + i * width;
    const LogSumExp<W> z = warp_log_sum_exp(row, width, lane);
    const W last = log ? std::log(z.sum) : 1 / z.sum;
    lanes_write(width, lane, y + i * width, false, [=](int64_t j) {
      const W centred = W(row[j]) - z.max;
      return log ? centred - last : fast_exp(centred) * last;
    });
  });
}

template <>
template <class T>
void SoftmaxKernels<Cuda>::backward(bool log, RowsSize size, const T* y, const T* dy, Target<T> dx) {
  using W = Wide<T>;
  const int64_t rows = size.rows, width = size.width;
  each_row(rows, [=] __device__(int64_t i, int lane) {
    const T *p = y + i * width, *d = dy + i * width;
    // of dy y; with `log`, of dy
    const W sum = lanes_sum<W>(width, lane, [=](int64_t j) { return log ? W(d[j]) : W(d[j]) * W(p[j]); });
    lanes_write(width, lane, dx.data + i * width, dx.add, [=](int64_t j) {
      return log ? W(d[j]) - fast_exp(W(p[j])) * sum : W(p[j]) * (W(d[j]) - sum);
    });
  });
}

TESSERA_FOR_FLOATS(SoftmaxKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(SoftmaxKernels<Cuda>::backward)

}  // namespace tessera
