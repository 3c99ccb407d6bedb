#include "engine/core/dispatch.h"
#include "engine/core/memory.h"
#include "engine/cuda/biased.h"
#include "engine/cuda/reduce.h"
#include "engine/ops/activations_kernels.h"
#include "engine/ops/linear_kernels.h"

namespace tessera {

namespace {

// y holds z: y = f(z), slope = f'(z), in one pass; slope may be null.
template <class F, int V, class T> __global__ void bend(int64_t n, T* y, T* slope) {
  using W = Wide<T>;
  for (int64_t p = grid_thread(); p < (n + V - 1) / V; p += grid_threads()) {
    const int64_t first = p * V;
    if (first + V > n) {  // the last, shorter than a pack
      for (int64_t i = first; i < n; ++i) {
        const W z = W(y[i]);
        y[i] = T(F::value(z));
        if (slope) slope[i] = T(F::slope(z));
      }
      continue;
    }
    auto values = load_pack<V>(y + first), slopes = values;
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const W z = W(values.at[k]);
      values.at[k] = T(F::value(z));
      slopes.at[k] = T(F::slope(z));
    }
    store_pack<V>(y + first, values);
    if (slope) store_pack<V>(slope + first, slopes);
  }
}

template <class F, class T> void bend_all(int64_t n, T* y, T* slope) {
  constexpr int v = pack_of<T>;
  if (n == 0) return;
  if (aligned(y, v) && (!slope || aligned(slope, v)))
    launch(bend<F, v, T>, grid_for((n + v - 1) / v), n, y, slope);
  else
    launch(bend<F, 1, T>, grid_for(n), n, y, slope);
}

}  // namespace

// cuBLASLt adds the bias; of its activations gelu_tanh alone is ours, and without the slope.
template <>
template <class T>
void LinearKernels<Cuda>::forward(const LinearSize& size, const T* x, const T* weight, const T* bias,
                                  Activation f, T* y, T* slope) {
  if (size.in == 0) {
    Memory<Cuda>::zero(y, static_cast<size_t>(size.rows * size.out) * sizeof(T));
    if (bias) add_bias(size.rows, size.out, bias, y);
  } else {
    const MatrixProduct product{false, true, size.rows, size.out, size.in, size.in, size.in, size.out};
    const Epilogue all = bias ? Epilogue::bias_gelu_tanh : Epilogue::gelu_tanh;
    if (f == Activation::gelu_tanh && !slope && multiply_with(all, product, x, weight, y, bias)) return;
    multiply_biased(product, x, weight, y, bias);
  }
  if (f != Activation::none)
    with_activation(f, [&]<class F>(F) { bend_all<F>(size.rows * size.out, y, slope); });
}

namespace {

// slope = dy slope (dz), and dbias where wanted, in one pass. Without a slope dz is dy.
template <class T>
const T* slopes_and_bias(const LinearSize& size, const T* dy, T* slope, T* dbias, bool add_dbias) {
  using W = Wide<T>;
  const int64_t width = size.out;
  if (slope && dbias)
    column_sums<T>(
        size.rows, width,
        [=] __device__(int64_t i, int64_t j) {
          const T dz = T(W(dy[i * width + j]) * W(slope[i * width + j]));
          slope[i * width + j] = dz;
          return W(dz);
        },
        W(1), dbias, add_dbias);
  else if (slope)
    map(
        size.rows * width, slope, false, [] __device__(int64_t, W d, W s) { return d * s; }, dy,
        static_cast<const T*>(slope));
  else if (dbias)
    sum_of_rows(size.rows, width, dy, W(1), dbias, add_dbias);
  return slope ? slope : dy;
}

template <class T>
void multiply_or_zero(const MatrixProduct& product, const T* a, const T* b, T* c, bool add) {
  if (product.k > 0)
    multiply(product, a, b, c, add);
  else if (!add)
    Memory<Cuda>::zero(c, static_cast<size_t>(product.m * product.n) * sizeof(T));
}

}  // namespace

template <>
template <class T>
void LinearKernels<Cuda>::backward(const LinearSize& size, const T* dy, T* slope, const T* x, const T* weight,
                                   T* dx, bool add_dx, T* dweight, bool add_dweight, T* dbias,
                                   bool add_dbias) {
  const T* dz = slopes_and_bias(size, dy, slope, dbias, add_dbias);
  if (dx)
    multiply_or_zero({false, false, size.rows, size.in, size.out, size.out, size.in, size.in}, dz, weight, dx,
                     add_dx);
  if (dweight)
    multiply_or_zero({true, false, size.out, size.in, size.rows, size.out, size.in, size.in}, dz, x, dweight,
                     add_dweight);
}

TESSERA_FOR_FLOATS(LinearKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(LinearKernels<Cuda>::backward)

}  // namespace tessera
