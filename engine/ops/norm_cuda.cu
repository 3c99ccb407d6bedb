#include "engine/core/dispatch.h"
#include "engine/ops/norm_kernels.h"
#include "engine/ops/norm_rows_cuda.h"

namespace tessera {

namespace {

using namespace norm_detail;

// The forward pass for rows of any width.
template <class T>
void wide_forward(RowsSize size, const T* x, const T* weight, const T* bias, double eps, T* y, Wide<T>* mean,
                  Wide<T>* rstd) {
  const int64_t rows = size.rows, width = size.width;
  using W = Wide<T>;
  each_row(rows, [=] __device__(int64_t i, int lane) {
    const T* row = x + i * width;  // the first of three passes leaves it in the first cache
    const W first = W(row[0]);
    const W m = first + lanes_sum<W>(width, lane, [=](int64_t j) { return W(row[j]) - first; }) / W(width);
    const W squares = lanes_sum<W>(width, lane, [=](int64_t j) {
      const W centred = W(row[j]) - m;
      return centred * centred;
    });
    const W r = fast_rsqrt(squares / W(width) + W(eps));
    if (lane == 0) {
      mean[i] = m;
      rstd[i] = r;
    }
    lanes_write(width, lane, y + i * width, false,
                [=](int64_t j) { return (W(row[j]) - m) * r * W(weight[j]) + W(bias[j]); });
  });
}

}  // namespace

template <>
template <class T>
void LayerNormKernels<Cuda>::forward(RowsSize size, const T* x, const T* weight, const T* bias, double eps,
                                     T* y, Wide<T>* mean, Wide<T>* rstd) {
  const int64_t rows = size.rows, width = size.width;
  constexpr int v = neighbours<T>;
  const auto fits = [&](const T* p) { return aligned(p, v); };
  const bool paired = width % v == 0 && fits(x) && fits(weight) && fits(bias) && fits(y);
  if (rows == 0) return;
  const bool held = with_held<T>(width, paired, [&]<int V, int count, bool full>() {
    launch(forward_held<T, V, count, full, false>, grid_for(rows * warp), size, x, ResidualOn<T>{}, weight,
           bias, Wide<T>(eps), y, mean, rstd);
  });
  if (!held) wide_forward(size, x, weight, bias, eps, y, mean, rstd);
}

namespace {

// dx, and below dweight, for rows of any width.
template <class T> void wide_input_gradient(RowsSize size, const BackwardInputs<T>& in, Target<T> dx) {
  using W = Wide<T>;
  const int64_t width = size.width;
  each_row(size.rows, [=] __device__(int64_t i, int lane) {
    const T *dy_row = in.dy + i * width, *x_row = in.x + i * width, *weight = in.weight;
    const W m = in.mean[i], r = in.rstd[i];
    const auto g = [=](int64_t j) { return W(dy_row[j]) * W(weight[j]); };
    const auto h = [=](int64_t j) { return (W(x_row[j]) - m) * r; };
    const W g_mean = lanes_sum<W>(width, lane, g) / W(width);
    const W gh_mean = lanes_sum<W>(width, lane, [=](int64_t j) { return g(j) * h(j); }) / W(width);
    lanes_write(width, lane, dx.data + i * width, dx.add,
                [=](int64_t j) { return (g(j) - g_mean - h(j) * gh_mean) * r; });
  });
}

template <class T> void wide_weight_gradient(RowsSize size, const BackwardInputs<T>& in, Target<T> dweight) {
  using W = Wide<T>;
  const int64_t width = size.width;
  column_sums(
      size.rows, width,
      [=] __device__(int64_t i, int64_t j) {
        return W(in.dy[i * width + j]) * ((W(in.x[i * width + j]) - in.mean[i]) * in.rstd[i]);
      },
      W(1), dweight.data, dweight.add);
}

}  // namespace

template <>
template <class T>
void LayerNormKernels<Cuda>::backward(RowsSize size, const T* dy, const T* x, const T* weight,
                                      const Wide<T>* mean, const Wide<T>* rstd,
                                      const LayerGradients<T>& gradients) {
  const auto& [dx, dweight, dbias] = gradients;
  const BackwardInputs<T> in{dy, x, weight, mean, rstd};
  if (size.width <= most_held) return backward_rows(size, in, gradients, ResidualOn<T>{});
  if (dx) wide_input_gradient(size, in, dx);
  if (dweight) wide_weight_gradient(size, in, dweight);
  if (dbias) sum_of_rows(size.rows, size.width, dy, Wide<T>(1), dbias.data, dbias.add);
}

TESSERA_FOR_FLOATS(LayerNormKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(LayerNormKernels<Cuda>::backward)

}  // namespace tessera
