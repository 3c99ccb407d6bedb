#include <algorithm>
#include <limits>

#include "engine/core/dispatch.h"
#include "engine/core/scratch.h"
#include "engine/cpu/each.h"
#include "engine/cpu/log_sum_exp.h"
#include "engine/cpu/row_sums.h"
#include "engine/ops/attention/softmax_rows.h"
#include "engine/ops/softmax_kernels.h"

namespace tessera {

namespace {

constexpr int of_exponentials = 41;  // key of a thread's scratch memory

// y [width] = softmax(x). The row is copied to whole vectors, ended by -inf, so that each exponential is made
// once, and always by a vector of them.
template <class T> void softmax_row(int64_t width, const T* x, T* y) {
  using W = Wide<T>;
  const int64_t whole = whole_vectors<W>(width);
  W* const e = thread_scratch<W, of_exponentials>(whole);
  write_each(0, width, e, false, [x](int64_t j) { return W(x[j]); });
  std::fill(e + width, e + whole, -std::numeric_limits<W>::infinity());
  const W max = largest_of_lanes<W>(maxima_of_row(whole, e));
  const W sum = sum_of_lanes<W>(exponentials_of_row(whole, e, max));
  write_each(0, width, y, false, [e, share = 1 / sum](int64_t j) { return e[j] * share; });
}

template <class T> void log_softmax_row(int64_t width, const T* x, T* y) {
  using W = Wide<T>;
  const LogSumExp<W> z = log_sum_exp(x, width);
  write_each(0, width, y, false, [x, max = z.max, log = z.log()](int64_t j) { return W(x[j]) - max - log; });
}

}  // namespace

template <> template <class T> void SoftmaxKernels<Cpu>::forward(bool log, RowsSize size, const T* x, T* y) {
  const auto row = log ? log_softmax_row<T> : softmax_row<T>;
  parallel_rows(size.rows, size.width,
                [=, width = size.width](int64_t i) { row(width, x + i * width, y + i * width); });
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
