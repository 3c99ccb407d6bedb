#include "engine/core/dispatch.h"
#include "engine/cuda/index.h"
#include "engine/cuda/reduce.h"
#include "engine/ops/batch_norm_kernels.h"

namespace tessera {

template <>
template <class T>
void BatchNormKernels<Cuda>::statistics(int64_t rows, int64_t width, const T* x, Wide<T>* mean,
                                        Wide<T>* variance) {
  using W = Wide<T>;
  const W share = W(1) / W(rows);
  sum_of_rows(rows, width, x, share, mean, false);
  column_sums(
      rows, width,
      [=] __device__(int64_t i, int64_t j) {
        const W centred = W(x[i * width + j]) - mean[j];
        return centred * centred;
      },
      share, variance, false);
}

template <>
template <class T>
void BatchNormKernels<Cuda>::update(int64_t rows, int64_t width, const Wide<T>* mean, const Wide<T>* variance,
                                    double momentum, T* running_mean, T* running_var) {
  using W = Wide<T>;
  const W keep = W(1 - momentum), take = W(momentum), unbiased = W(rows) / W(rows - 1);
  map(width, running_mean, false,
      [=] __device__(int64_t j) { return keep * W(running_mean[j]) + take * mean[j]; });
  map(width, running_var, false,
      [=] __device__(int64_t j) { return keep * W(running_var[j]) + take * variance[j] * unbiased; });
}

template <>
template <class T>
void BatchNormKernels<Cuda>::forward(int64_t rows, int64_t width, const T* x, const T* weight, const T* bias,
                                     const Wide<T>* mean, const Wide<T>* variance, double eps, Wide<T>* rstd,
                                     T* y) {
  using W = Wide<T>;
  map(width, rstd, false, [=] __device__(int64_t j) { return 1 / std::sqrt(variance[j] + W(eps)); });
  map(
      rows * width, y, false,
      [=] __device__(int64_t i, W value) {
        const int64_t j = split_off(i, width);
        const W a = rstd[j] * W(weight[j]);
        return a * value + (W(bias[j]) - mean[j] * a);
      },
      x);
}

template <>
template <class T>
void BatchNormKernels<Cuda>::backward(int64_t rows, int64_t width, bool batch, const T* dy, const T* x,
                                      const T* weight, const Wide<T>* mean, const Wide<T>* rstd, bool add_dx,
                                      T* dx, bool add_dweight, T* dweight, bool add_dbias, T* dbias) {
  using W = Wide<T>;
  const Scratch<W> sums(2 * width);
  W *const dy_h = sums.data(), *const dy_sum = dy_h + width;  // = dweight, dbias
  column_sums(
      rows, width,
      [=] __device__(int64_t i, int64_t j) {
        return W(dy[i * width + j]) * ((W(x[i * width + j]) - mean[j]) * rstd[j]);
      },
      W(1), dy_h, false);
  sum_of_rows(rows, width, dy, W(1), dy_sum, false);
  if (dx) {
    // dx = rstd weight (dy - mean(dy) - h mean(dy h)), the means only where the batch made the statistics
    const W share = batch ? W(1) / W(rows) : W(0);
    map(
        rows * width, dx, add_dx,
        [=] __device__(int64_t i, W d, W value) {
          const int64_t j = split_off(i, width);
          const W h = (value - mean[j]) * rstd[j];
          return rstd[j] * W(weight[j]) * (d - share * (dy_sum[j] + h * dy_h[j]));
        },
        dy, x);
  }
  if (dweight) map(width, dweight, add_dweight, [=] __device__(int64_t j) { return dy_h[j]; });
  if (dbias) map(width, dbias, add_dbias, [=] __device__(int64_t j) { return dy_sum[j]; });
}

TESSERA_FOR_FLOATS(BatchNormKernels<Cuda>::statistics)
TESSERA_FOR_FLOATS(BatchNormKernels<Cuda>::update)
TESSERA_FOR_FLOATS(BatchNormKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(BatchNormKernels<Cuda>::backward)

}  // namespace tessera
