#include "engine/core/dispatch.h"
#include "engine/cpu/each.h"
#include "engine/cpu/log_sum_exp.h"
#include "engine/cpu/row_sums.h"
#include "engine/ops/softmax_kernels.h"

namespace tessera {

template <> template <class T> void SoftmaxKernels<Cpu>::forward(bool log, RowsSize size, const T* x, T* y) {
  using W = Wide<T>;
  const int64_t rows = size.rows, width = size.width;
  parallel_rows(rows, width, [=](int64_t i) {
    const T* row = x + i * width;
    const LogSumExp<W> z = log_sum_exp(row, width);
    const W max = z.max, last = log ? z.log() : 1 / z.sum;
    T* out = y + i * width;
    if (log)
      write_each(0, width, out, false, [=](int64_t j) { return W(row[j]) - max - last; });
    else
      write_each(0, width, out, false, [=](int64_t j) { return fast_exp(W(row[j]) - max) * last; });
  });
}

template <>
template <class T>
void SoftmaxKernels<Cpu>::backward(bool log, RowsSize size, const T* y, const T* dy, Target<T> dx) {
  using W = Wide<T>;
  const int64_t rows = size.rows, width = size.width;
  parallel_rows(rows, width, [=](int64_t i) {
    const T *p = y + i * width, *d = dy + i * width;
    T* out = dx.data + i * width;
    const W sum = log ? sum_of_row(width, d) : dot_product(width, d, p);
    if (log)
      write_each(0, width, out, dx.add, [=](int64_t j) { return W(d[j]) - fast_exp(W(p[j])) * sum; });
    else
      write_each(0, width, out, dx.add, [=](int64_t j) { return W(p[j]) * (W(d[j]) - sum); });
  });
}

TESSERA_FOR_FLOATS(SoftmaxKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(SoftmaxKernels<Cpu>::backward)

}  // namespace tessera
