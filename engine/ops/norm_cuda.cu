#include "engine/core/dispatch.h"
#include "engine/cuda/rows.h"
#include "engine/ops/norm_kernels.h"

namespace tessera {

template <>
template <class T>
void LayerNormKernels<Cuda>::forward(int64_t rows, int64_t width, const T* x, const T* weight, const T* bias,
                                     double eps, T* y, Wide<T>* mean, Wide<T>* rstd) {
  using W = Wide<T>;
  each_row(rows, [=] __device__(int64_t i, int lane) {
    const T* row = x + i * width;  // in the first cache after the first of the three passes
    const W m = lanes_sum<W>(width, lane, [=](int64_t j) { return W(row[j]); }) / W(width);
    const W squares = lanes_sum<W>(width, lane, [=](int64_t j) {
      const W centred = W(row[j]) - m;
      return centred * centred;
    });
    const W r = 1 / std::sqrt(squares / W(width) + W(eps));
    if (lane == 0) {
      mean[i] = m;
      rstd[i] = r;
    }
    lanes_write(width, lane, y + i * width, false,
                [=](int64_t j) { return (W(row[j]) - m) * r * W(weight[j]) + W(bias[j]); });
  });
}

namespace {

// dx = rstd (g - mean(g) - h mean(g h)), g = dy weight, h = (x - mean) rstd.
template <class T>
void input_gradient(int64_t rows, int64_t width, const T* dy, const T* x, const T* weight,
                    const Wide<T>* mean, const Wide<T>* rstd, T* dx, bool add) {
  using W = Wide<T>;
  each_row(rows, [=] __device__(int64_t i, int lane) {
    const T *dy_row = dy + i * width, *x_row = x + i * width;
    const W m = mean[i], r = rstd[i];
    W g_sum = 0, gh_sum = 0;
    for (int64_t j = lane; j < width; j += warp) {
      const W h = (W(x_row[j]) - m) * r, g = W(dy_row[j]) * W(weight[j]);
      g_sum += g;
      gh_sum += g * h;
    }
    const W g_mean = warp_sum(g_sum) / W(width), gh_mean = warp_sum(gh_sum) / W(width);
    lanes_write(width, lane, dx + i * width, add, [=](int64_t j) {
      const W h = (W(x_row[j]) - m) * r;
      return (W(dy_row[j]) * W(weight[j]) - g_mean - h * gh_mean) * r;
    });
  });
}

// dweight = sum over rows of dy h, dbias = that of dy.
template <class T>
void weight_gradient(int64_t rows, int64_t width, const T* dy, const T* x, const Wide<T>* mean,
                     const Wide<T>* rstd, T* dweight, bool add) {
  using W = Wide<T>;
  column_sums(
      rows, width,
      [=] __device__(int64_t i, int64_t j) {
        return W(dy[i * width + j]) * (W(x[i * width + j]) - mean[i]) * rstd[i];
      },
      W(1), dweight, add);
}

template <class T> void bias_gradient(int64_t rows, int64_t width, const T* dy, T* dbias, bool add) {
  using W = Wide<T>;
  column_sums(
      rows, width, [=] __device__(int64_t i, int64_t j) { return W(dy[i * width + j]); }, W(1), dbias, add);
}

}  // namespace

template <>
template <class T>
void LayerNormKernels<Cuda>::backward(int64_t rows, int64_t width, const T* dy, const T* x, const T* weight,
                                      const Wide<T>* mean, const Wide<T>* rstd, T* dx, bool add_dx,
                                      T* dweight, bool add_dweight, T* dbias, bool add_dbias) {
  if (dx) input_gradient(rows, width, dy, x, weight, mean, rstd, dx, add_dx);
  if (dweight) weight_gradient(rows, width, dy, x, mean, rstd, dweight, add_dweight);
  if (dbias) bias_gradient(rows, width, dy, dbias, add_dbias);
}

TESSERA_FOR_FLOATS(LayerNormKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(LayerNormKernels<Cuda>::backward)

}  // namespace tessera
