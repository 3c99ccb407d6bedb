#include "engine/core/dispatch.h"
#include "engine/cuda/index.h"
#include "engine/cuda/launch.h"
#include "engine/cuda/rounded_math.h"
#include "engine/ops/activations_kernels.h"
#include "engine/ops/batch_norm_kernels.h"

namespace tessera {

// Sums over the rows of each column in one pass over memory: each block sums a part of the rows, then the
// parts are joined. A Sum is a struct of plain numbers, all zeros at first, that can join() another.
namespace {

constexpr int joiners = 16;  // threads that join the parts of one column

// The sums of the threads of a block with one threadIdx.x, in an order that the block's shape fixes; thread
// (x, 0) has the result. blockDim.y is a power of two.
template <class Sum> __device__ inline Sum join_rows(Sum own, Sum* tile) {
  const int width = static_cast<int>(blockDim.x);
  Sum* const place = tile + static_cast<int>(threadIdx.y) * width + static_cast<int>(threadIdx.x);
  *place = own;
  for (int step = static_cast<int>(blockDim.y) / 2; step > 0; step /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.y) < step) {
      own.join(place[step * width]);
      *place = own;
    }
  }
  __syncthreads();  // tile is free again
  return own;
}

// parts [gridDim.y, width]: row y holds the sums over the rows of part y. add(offset of (row, column),
// column, sums of V columns) adds V numbers of a row.
template <int V, class Sum, class Add>
__global__ void __launch_bounds__(block_threads)
    sum_part(int64_t rows, int64_t width, int64_t rows_a_part, Add add, Sum* parts) {
  wait_for_previous_kernel();
  __shared__ Sum tile[block_threads];
  const int64_t end = min(rows, (int64_t{blockIdx.y} + 1) * rows_a_part);
  for (int64_t left = int64_t{blockIdx.x} * blockDim.x; left * V < width;
       left += int64_t{gridDim.x} * blockDim.x) {
    const int64_t j = (left + threadIdx.x) * V;
    Sum sum[V] = {};
    if (j < width)
#pragma unroll 4
      for (int64_t i = blockIdx.y * rows_a_part + threadIdx.y; i < end; i += blockDim.y)
        add(i * width + j, j, sum);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const Sum total = join_rows(sum[v], tile);
      if (threadIdx.y == 0 && j < width) parts[blockIdx.y * width + j + v] = total;
    }
  }
}

// Calls finish(column, its sum) with the sum of `count` parts. Block (warp, joiners).
template <class Sum, class Finish>
__global__ void __launch_bounds__(warp* joiners)
    join_parts(int64_t width, int64_t count, const Sum* parts, Finish finish) {
  wait_for_previous_kernel();
  __shared__ Sum tile[warp * joiners];
  for (int64_t left = int64_t{blockIdx.x} * warp; left < width; left += int64_t{gridDim.x} * warp) {
    const int64_t j = left + threadIdx.x;
    Sum sum = {};
    if (j < width)
      for (int64_t c = threadIdx.y; c < count; c += joiners) sum.join(parts[c * width + j]);
    sum = join_rows(sum, tile);
    if (threadIdx.y == 0 && j < width) finish(j, sum);
  }
}

// Calls finish(column, its sum over all rows). V columns a thread; the cut depends on the sizes alone.
template <int V, class Sum, class Add, class Finish>
void sum_columns(int64_t rows, int64_t width, const Add& add, const Finish& finish) {
  constexpr int64_t least_rows = 64, most_blocks = 1024;
  const int64_t packs = width / V;
  unsigned lanes = 1;
  while (lanes < warp && lanes < packs) lanes *= 2;
  const int64_t across = std::min<int64_t>((packs + lanes - 1) / lanes, most_blocks);
  const int64_t parts = std::clamp<int64_t>(rows / least_rows, 1, most_blocks / across);
  const Scratch<Sum> sums(parts * width);
  launch(sum_part<V, Sum, Add>,
         LaunchGrid{dim3(static_cast<unsigned>(across), static_cast<unsigned>(parts)),
                    dim3(lanes, block_threads / lanes)},
         rows, width, (rows + parts - 1) / parts, add, sums.data());
  launch(join_parts<Sum, Finish>,
         LaunchGrid{dim3(static_cast<unsigned>((width + warp - 1) / warp)), dim3(warp, joiners)}, width,
         parts, static_cast<const Sum*>(sums.data()), finish);
}

// Columns that a thread reads at once: 8 bytes.
template <class T> inline constexpr int columns_of = 8 / static_cast<int>(sizeof(T));

template <class T, int V> struct AddNumbers {
  using W = Wide<T>;
  const T* x;
  __device__ void operator()(int64_t at, int64_t, ColumnMoments<W> (&sum)[V]) const {
    const auto pack = load_pack<V>(x + at);
    const W share = 1 / (sum[0].count + 1);
#pragma unroll
    for (int v = 0; v < V; ++v) sum[v].add(W(pack.at[v]), share);
  }
};

// The sums over rows of dz h and dz: dweight and dbias.
template <class W> struct GradientSums {
  W dz_h, dz;
  TESSERA_HD void join(const GradientSums& other) {
    dz_h += other.dz_h;
    dz += other.dz;
  }
};

// What f is applied to is z = scale x + shift; its numbers of a column.
template <class T> struct Affine {
  using W = Wide<T>;
  const T *weight, *bias;
  const W *mean, *variance;
  W eps;

  explicit Affine(const NormedColumns<T>& z)
      : weight(z.weight), bias(z.bias), mean(z.by.mean), variance(z.by.variance), eps(W(z.by.eps)) {}

  __device__ W rstd(int64_t j) const { return 1 / std::sqrt(variance[j] + eps); }
  __device__ W z(W x, int64_t j) const {
    const W scale = W(weight[j]) / std::sqrt(variance[j] + eps);
    return scale * x + (W(bias[j]) - mean[j] * scale);
  }
  // dz of a number of x.
  template <class F> __device__ W before(W dy, W x, int64_t j) const {
    if constexpr (std::is_same_v<F, Identity>)
      return dy;
    else
      return dy * W(F::slope(ActivationMath<T>(z(x, j))));
  }
};

template <class F, class T, int V> struct AddGradients {
  using W = Wide<T>;
  const T *dy, *x;
  Affine<T> affine;
  __device__ void operator()(int64_t at, int64_t j, GradientSums<W> (&sum)[V]) const {
    const auto d = load_pack<V>(dy + at), value = load_pack<V>(x + at);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const W rstd = affine.rstd(j + v);  // of a column: outside of the loop over rows
      const W dz = affine.template before<F>(W(d.at[v]), W(value.at[v]), j + v);
      sum[v].dz_h += dz * ((W(value.at[v]) - affine.mean[j + v]) * rstd);
      sum[v].dz += dz;
    }
  }
};

template <class F, class T>
void norm_all(int64_t elements, int64_t width, const Affine<T>& affine, const T* x, T* y) {
  using W = Wide<T>;
  map(
      elements, y, false,
      [=] __device__(int64_t i, W value) {
        const W z = affine.z(value, split_off(i, width));
        return W(F::value(ActivationMath<T>(z)));
      },
      x);
}

template <class F, class T>
void gradients_of(RowsSize size, const T* dy, const T* x, const Affine<T>& affine, Wide<T> share,
                  const LayerGradients<T>& gradients) {
  using W = Wide<T>;
  const int64_t rows = size.rows, width = size.width;
  const Target<T> dx = gradients.dx, dweight = gradients.dweight, dbias = gradients.dbias;
  using Sum = GradientSums<W>;
  const Scratch<Sum> scratch(width);
  Sum* const sums = scratch.data();
  const auto finish = [=] __device__(int64_t j, const Sum& sum) {
    sums[j] = sum;
    if (dweight.data) dweight.data[j] = T(dweight.add ? W(dweight.data[j]) + sum.dz_h : sum.dz_h);
    if (dbias.data) dbias.data[j] = T(dbias.add ? W(dbias.data[j]) + sum.dz : sum.dz);
  };
  constexpr int v = columns_of<T>;
  if (width % v == 0 && aligned(x, v) && aligned(dy, v))
    sum_columns<v, Sum>(rows, width, AddGradients<F, T, v>{dy, x, affine}, finish);
  else
    sum_columns<1, Sum>(rows, width, AddGradients<F, T, 1>{dy, x, affine}, finish);
  if (!dx) return;
  // dx = rstd weight (dz - mean(dz) - h mean(dz h))
  map(
      rows * width, dx.data, dx.add,
      [=] __device__(int64_t i, W d, W value) {
        const int64_t j = split_off(i, width);
        const W rstd = affine.rstd(j), h = (value - affine.mean[j]) * rstd;
        const W dz = affine.template before<F>(d, value, j);
        return rstd * W(affine.weight[j]) * (dz - share * (sums[j].dz + h * sums[j].dz_h));
      },
      dy, x);
}

}  // namespace

template <>
template <class T>
void BatchNormKernels<Cuda>::statistics(RowsSize size, const T* x, double momentum, Wide<T>* mean,
                                        Wide<T>* variance, Wide<T>* running_mean, Wide<T>* running_var) {
  using W = Wide<T>;
  const int64_t rows = size.rows, width = size.width;
  using Sum = ColumnMoments<W>;
  const W keep = W(1 - momentum), take = W(momentum), unbiased = W(rows) / W(rows - 1), n = W(rows);
  const auto finish = [=] __device__(int64_t j, const Sum& sum) {
    mean[j] = sum.mean;
    variance[j] = sum.squares / n;
    running_mean[j] = keep * running_mean[j] + take * mean[j];
    running_var[j] = keep * running_var[j] + take * variance[j] * unbiased;
  };
  constexpr int v = columns_of<T>;
  if (width % v == 0 && aligned(x, v))
    sum_columns<v, Sum>(rows, width, AddNumbers<T, v>{x}, finish);
  else
    sum_columns<1, Sum>(rows, width, AddNumbers<T, 1>{x}, finish);
}

template <>
template <class T>
void BatchNormKernels<Cuda>::forward(RowsSize size, const NormedColumns<T>& z, Activation f, T* y) {
  const int64_t width = size.width;
  const Affine<T> affine(z);
  with_activation(f, [&]<class F>(F) { norm_all<F>(size.rows * width, width, affine, z.x, y); });
}

template <>
template <class T>
void BatchNormKernels<Cuda>::backward(RowsSize size, const T* dy, const NormedColumns<T>& z, Activation f,
                                      const LayerGradients<T>& gradients, const Target<T>&) {
  using W = Wide<T>;
  const Affine<T> affine(z);
  // The means of dz are subtracted only where the statistics are the batch's.
  const W share = z.by.of_batch ? W(1) / W(size.rows) : W(0);
  with_activation(f, [&]<class F>(F) { gradients_of<F>(size, dy, z.x, affine, share, gradients); });
}

TESSERA_FOR_FLOATS(BatchNormKernels<Cuda>::statistics)
TESSERA_FOR_FLOATS(BatchNormKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(BatchNormKernels<Cuda>::backward)

}  // namespace tessera
