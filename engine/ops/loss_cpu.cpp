#include "engine/core/dispatch.h"
#include "engine/cpu/each.h"
#include "engine/cpu/log_sum_exp.h"
#include "engine/ops/loss_kernels.h"

namespace tessera {

namespace {

// -sum_k t_k log p_k of row i, before smoothing; nll(k) is -log p_k.
template <class T, class Nll>
Wide<T> row_loss(const Targets<T>& targets, int64_t i, int64_t classes, Nll nll) {
  using W = Wide<T>;
  if (targets.soft) {
    W sum = 0;
    for (int64_t k = 0; k < classes; ++k)
      if (const W t = W(targets.soft[i * classes + k]); t != 0) sum += t * nll(k);  // 0 log 0 is 0
    return sum;
  }
  if (!targets.b) return nll(targets.a[i]);
  const auto part = [&](double t, int64_t label) { return t != 0 ? W(t) * nll(label) : W(0); };
  return part(targets.lam, targets.a[i]) + part(1 - targets.lam, targets.b[i]);
}

template <class T>
Wide<T> smoothed_row_loss(const Targets<T>& targets, int64_t i, int64_t classes, const T* x, Wide<T> max,
                          Wide<T> log_sum) {
  using W = Wide<T>;
  const auto nll = [=](int64_t k) { return log_sum - (W(x[k]) - max); };
  const W loss = row_loss(targets, i, classes, nll);
  if (targets.smoothing == 0) return loss;
  W all = 0;
  for (int64_t k = 0; k < classes; ++k) all += nll(k);
  return W(1 - targets.smoothing) * loss + W(targets.smoothing / static_cast<double>(classes)) * all;
}

template <class T> Wide<T> soft_sum(const Targets<T>& targets, int64_t i, int64_t classes) {
  Wide<T> sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += Wide<T>(targets.soft[i * classes + k]);
  return Wide<T>(1 - targets.smoothing) * sum + Wide<T>(targets.smoothing);
}

}  // namespace

template <>
template <class T>
void CrossEntropyKernels<Cpu>::forward(RowsSize size, const T* x, const Targets<T>& targets,
                                       const LossDivisor& divisor, Wide<T>* y, Wide<T>* max,
                                       Wide<T>* log_sum) {
  const int64_t rows = size.rows, classes = size.width;
  const double sum = parallel_sum<double>(rows, rows_a_chunk(classes), [=](int64_t begin, int64_t end) {
    double part = 0;
    for (int64_t i = begin; i < end; ++i) {
      if (targets.ignores(i)) continue;
      const T* row = x + i * classes;
      const auto z = log_sum_exp(row, classes);
      max[i] = z.max;
      log_sum[i] = z.log();
      part += static_cast<double>(smoothed_row_loss(targets, i, classes, row, max[i], log_sum[i]));
    }
    return part;
  });
  *y = Wide<T>(sum / divisor());
}

template <>
template <class T>
void CrossEntropyKernels<Cpu>::backward(RowsSize size, const T* x, const Targets<T>& targets,
                                        const LossDivisor& divisor, const Wide<T>* max,
                                        const Wide<T>* log_sum, const Wide<T>* dy, Target<T> dx) {
  const int64_t rows = size.rows, classes = size.width;
  using W = Wide<T>;
  const W factor = *dy / W(divisor());
  parallel_rows(rows, classes, [=](int64_t i) {
    const T* row = x + i * classes;
    T* out = dx.data + i * classes;
    if (targets.ignores(i)) return write_each(0, classes, out, dx.add, [](int64_t) { return W(0); });
    const W m = max[i], l = log_sum[i], total = targets.soft ? soft_sum(targets, i, classes) : W(1);
    const RowTargets<T> target(targets, i, classes);
    write_each(0, classes, out, dx.add,
               [=](int64_t k) { return factor * (fast_exp(W(row[k]) - m - l) * total - target(k)); });
  });
}

template <>
int64_t LabelKernels<Cpu>::first_bad(int64_t rows, int64_t classes, std::optional<int64_t> ignore,
                                     const int64_t* labels, int64_t* kept) {
  int64_t first = -1, counted = 0;
  for (int64_t i = 0; i < rows; ++i) {
    if (ignore && labels[i] == *ignore) continue;
    ++counted;
    if (first < 0 && (labels[i] < 0 || labels[i] >= classes)) first = i;
  }
  if (kept) *kept = counted;
  return first;
}

TESSERA_FOR_FLOATS(CrossEntropyKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(CrossEntropyKernels<Cpu>::backward)

}  // namespace tessera
