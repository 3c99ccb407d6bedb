#include "engine/core/device_backend.h"
#include "engine/core/dispatch.h"
#include "engine/cuda/graph.h"
#include "engine/cuda/log_sum_exp.h"
#include "engine/ops/loss_kernels.h"

namespace tessera {

namespace {

// -sum_k t_k log p_k of row i before smoothing, by the lanes of a warp; nll(k) is -log p_k. A label that is
// no class gives NaN, since labels cannot be checked while a graph is being captured.
template <class T, class Nll>
__device__ Wide<T> row_loss(const Targets<T>& targets, int64_t i, int64_t classes, int lane, const Nll& nll) {
  using W = Wide<T>;
  if (targets.soft) {
    const T* soft = targets.soft + i * classes;
    return lanes_sum<W>(classes, lane, [&](int64_t k) {
      const W t = W(soft[k]);
      return t != 0 ? t * nll(k) : W(0);  // 0 log 0 is 0
    });
  }
  const auto of_label = [&](int64_t label) { return label >= 0 && label < classes ? nll(label) : W(NAN); };
  if (!targets.b) return of_label(targets.a[i]);
  const auto part = [&](double t, int64_t label) { return t != 0 ? W(t) * of_label(label) : W(0); };
  return part(targets.lam, targets.a[i]) + part(1 - targets.lam, targets.b[i]);
}

template <class T>
__device__ Wide<T> smoothed_row_loss(const Targets<T>& targets, int64_t i, int64_t classes, int lane,
                                     const T* x, Wide<T> max, Wide<T> log_sum) {
  using W = Wide<T>;
  const auto nll = [=](int64_t k) { return log_sum - (W(x[k]) - max); };
  const W loss = row_loss(targets, i, classes, lane, nll);
  if (targets.smoothing == 0) return loss;
  return W(1 - targets.smoothing) * loss +
         W(targets.smoothing / static_cast<double>(classes)) * lanes_sum<W>(classes, lane, nll);
}

// The sum of a row's smoothed soft targets.
template <class T>
__device__ Wide<T> soft_sum(const Targets<T>& targets, const T* soft, int64_t classes, int lane) {
  using W = Wide<T>;
  return W(1 - targets.smoothing) * lanes_sum<W>(classes, lane, [=](int64_t k) { return W(soft[k]); }) +
         W(targets.smoothing);
}

constexpr int one_block_threads = 1024;
constexpr LaunchGrid one_block{dim3(1), dim3(one_block_threads)};

// y = the sum of n losses / divisor, by one block.
template <class W>
__global__ void __launch_bounds__(one_block_threads)
    mean_loss(int64_t n, const double* losses, LossDivisor divisor, W* y) {
  wait_for_previous_kernel();
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += losses[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *y = W(sum / divisor());
}

struct Smaller {
  template <class W> TESSERA_HD static W identity() { return std::numeric_limits<W>::max(); }
  template <class W> TESSERA_HD static W of(W a, W b) { return b < a ? b : a; }
};

// parts [gridDim.x, 2]: for the labels that a block reads, {the row of the first bad one, or the largest
// integer; how many are not ignored}.
__global__ void __launch_bounds__(one_block_threads)
    look_at_labels(int64_t rows, int64_t classes, bool may_ignore, int64_t ignored, const int64_t* labels,
                   int64_t* parts) {
  wait_for_previous_kernel();
  int64_t first = Smaller::identity<int64_t>(), kept = 0;
  for (int64_t i = grid_thread(); i < rows; i += grid_threads()) {
    const int64_t label = labels[i];
    if (may_ignore && label == ignored) continue;
    ++kept;
    if (label < 0 || label >= classes) first = Smaller::of(first, i);
  }
  first = block_all<Smaller>(first);
  kept = block_sum(kept);
  if (threadIdx.x == 0) {
    parts[2 * blockIdx.x] = first;
    parts[2 * blockIdx.x + 1] = kept;
  }
}

// Joins the parts of look_at_labels, by one block; kept may be null.
__global__ void __launch_bounds__(one_block_threads)
    join_looks(int64_t count, const int64_t* parts, int64_t* first_bad, int64_t* kept) {
  wait_for_previous_kernel();
  int64_t first = Smaller::identity<int64_t>(), sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    first = Smaller::of(first, parts[2 * i]);
    sum += parts[2 * i + 1];
  }
  first = block_all<Smaller>(first);
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  *first_bad = first;
  if (kept) *kept = sum;
}

}  // namespace

template <>
template <class T>
void CrossEntropyKernels<Cuda>::forward(RowsSize size, const T* x, const Targets<T>& targets,
                                        const LossDivisor& divisor, Wide<T>* y, Wide<T>* max,
                                        Wide<T>* log_sum) {
  const int64_t rows = size.rows, classes = size.width;
  const Scratch<double> losses(rows);
  double* const loss = losses.data();
  each_row(rows, [=] __device__(int64_t i, int lane) {
    if (targets.ignores(i)) {
      if (lane == 0) loss[i] = 0;
      return;
    }
    const T* row = x + i * classes;
    const auto z = warp_log_sum_exp(row, classes, lane);
    const Wide<T> log = std::log(z.sum);
    const Wide<T> value = smoothed_row_loss(targets, i, classes, lane, row, z.max, log);
    if (lane != 0) return;
    max[i] = z.max;
    log_sum[i] = log;
    loss[i] = static_cast<double>(value);
  });
  launch(mean_loss<Wide<T>>, one_block, rows, loss, divisor, y);
}

template <>
template <class T>
void CrossEntropyKernels<Cuda>::backward(RowsSize size, const T* x, const Targets<T>& targets,
                                         const LossDivisor& divisor, const Wide<T>* max,
                                         const Wide<T>* log_sum, const Wide<T>* dy, Target<T> dx) {
  const int64_t rows = size.rows, classes = size.width;
  using W = Wide<T>;
  each_row(rows, [=] __device__(int64_t i, int lane) {
    const T* row = x + i * classes;
    T* out = dx.data + i * classes;
    if (targets.ignores(i)) return lanes_write(classes, lane, out, dx.add, [](int64_t) { return W(0); });
    const RowTargets<T> target(targets, i, classes);
    const W factor = *dy / W(divisor()), m = max[i], l = log_sum[i];
    const W total = target.soft ? soft_sum(targets, target.soft, classes, lane) : W(1);
    lanes_write(classes, lane, out, dx.add,
                [=](int64_t k) { return factor * (fast_exp(W(row[k]) - m - l) * total - target(k)); });
  });
}

template <>
int64_t LabelKernels<Cuda>::first_bad(int64_t rows, int64_t classes, std::optional<int64_t> ignore,
                                      const int64_t* labels, int64_t* kept) {
  if (Graph::capturing() && !kept) return -1;
  const int64_t blocks = std::clamp<int64_t>(rows / one_block_threads, 1, 1024);
  const Scratch<int64_t> parts(2 * blocks), found(1);
  launch(look_at_labels, LaunchGrid{dim3(static_cast<unsigned>(blocks)), dim3(one_block_threads)}, rows,
         classes, ignore.has_value(), ignore.value_or(0), labels, parts.data());
  launch(join_looks, one_block, blocks, parts.data(), found.data(), kept);
  if (Graph::capturing()) return -1;
  int64_t first = 0;
  backend(Device::cuda).copy_to_host(&first, found.data(), sizeof first);
  return first == Smaller::identity<int64_t>() ? -1 : first;
}

TESSERA_FOR_FLOATS(CrossEntropyKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(CrossEntropyKernels<Cuda>::backward)

}  // namespace tessera
