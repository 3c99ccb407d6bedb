#include "engine/core/device_backend.h"
#include "engine/core/dispatch.h"
#include "engine/cuda/biased.h"
#include "engine/cuda/deep_product.h"
#include "engine/cuda/late_sums.h"
#include "engine/cuda/reduce.h"
#include "engine/cuda/rounded_math.h"
#include "engine/cuda/side_stream.h"
#include "engine/ops/activations_kernels.h"
#include "engine/ops/linear_kernels.h"

namespace tessera {

// z is kept rather than f'(z): reading it again in the backward pass costs less than writing f'(z) in the
// forward pass. cuBLASLt adds the bias; of its activations only gelu_tanh is one of ours, and it leaves no z.
template <>
template <class T>
void LinearKernels<Cuda>::forward(const LinearSize& size, const T* x, const T* weight, const T* bias,
                                  Activation f, T* y, T* kept) {
  T* const z = kept ? kept : y;
  if (size.in == 0) {
    backend(Device::cuda).zero(z, static_cast<size_t>(size.rows * size.out) * sizeof(T));
    if (bias) add_bias(size.rows, size.out, bias, z);
  } else {
    const MatrixProduct product{false, true, size.rows, size.out, size.in, size.in, size.in, size.out};
    const Epilogue all = bias ? Epilogue::bias_gelu_tanh : Epilogue::gelu_tanh;
    constexpr bool exact = std::is_same_v<T, double>;  // cuBLASLt does not document how exact its tanh is
    if (!exact && f == Activation::gelu_tanh && !kept && multiply_with(all, product, x, weight, y, bias))
      return;
    multiply_biased(product, x, weight, z, bias);
  }
  if (f != Activation::none) ActivationKernels<Cuda>::forward(f, size.rows * size.out, z, y);
}

namespace {

constexpr int tile_rows = 8;     // rows of threads in a block
constexpr int rows_at_once = 4;  // rows that a thread loads together, to hide the latency
constexpr int64_t least_rows = tile_rows * rows_at_once, most_parts = 256;  // fixed by the sizes alone

// dz = dy F'(z), which overwrites z (where z is null, dz is dy), and parts [gridDim.y, width], the sums of dz
// over the rows of part y. Block (warp, tile_rows); V columns a thread.
template <class F, int V, class T>
__global__ void multiply_slope_and_sum(int64_t rows, int64_t width, int64_t rows_a_part, const T* dy, T* z,
                                       Wide<T>* parts) {
  wait_for_previous_kernel();
  using W = Wide<T>;
  __shared__ W tile[tile_rows][warp * V];
  const int64_t end = min(rows, (int64_t{blockIdx.y} + 1) * rows_a_part);
  for (int64_t left = int64_t{blockIdx.x} * warp * V; left < width; left += int64_t{gridDim.x} * warp * V) {
    const int64_t j = left + threadIdx.x * V;
    const int64_t first = blockIdx.y * rows_a_part + threadIdx.y, step = tile_rows * width;
    W sum[V] = {};
    int64_t at = first * width + j;
    for (int64_t i = first; i < end && j < width; i += tile_rows * rows_at_once, at += rows_at_once * step) {
      Pack<T, V> d[rows_at_once], at_z[rows_at_once];
#pragma unroll
      for (int u = 0; u < rows_at_once; ++u) {
        if (i + u * tile_rows >= end) continue;
        d[u] = load_pack<V>(dy + at + u * step);
        if (z) at_z[u] = load_pack<V>(z + at + u * step);
      }
#pragma unroll
      for (int u = 0; u < rows_at_once; ++u) {
        if (i + u * tile_rows >= end) continue;
#pragma unroll
        for (int v = 0; v < V; ++v) {
          if (z) d[u].at[v] = T(W(d[u].at[v]) * W(F::slope(ActivationMath<T>(W(at_z[u].at[v])))));
          sum[v] += W(d[u].at[v]);
        }
        if (z) store_pack<V>(z + at + u * step, d[u]);
      }
    }
#pragma unroll
    for (int v = 0; v < V; ++v) tile[threadIdx.y][threadIdx.x * V + v] = sum[v];
    __syncthreads();
    if (threadIdx.y == 0 && j < width)
#pragma unroll
      for (int v = 0; v < V; ++v) {
        for (int r = 1; r < tile_rows; ++r) sum[v] += tile[r][threadIdx.x * V + v];
        parts[blockIdx.y * width + j + v] = sum[v];
      }
    __syncthreads();
  }
}

// Sums dbias by parts of the rows; does nothing where it is not wanted.
template <class T> class BiasSums {
 public:
  using W = Wide<T>;

  BiasSums(const LinearSize& size, Target<T> dbias)
      : size_(size),
        dbias_{size.out > 0 ? dbias.data : nullptr, dbias.add},
        count_(std::clamp<int64_t>(size.rows / least_rows, 1, most_parts)),
        parts_(late_parts<T>(dbias_.data ? count_ * size.out : 0)) {}

  // Writes dz = dy f'(z) over z, and the parts, in one pass. Where z is null, dz is dy.
  void make(Activation f, const T* dy, T* z) const {
    const int64_t rows = size_.rows, width = size_.out;
    if (z && !dbias_)
      ActivationKernels<Cuda>::backward(f, rows * width, static_cast<const T*>(z), dy, Target<T>{z});
    if (!dbias_) return;
    constexpr int v = 8 / static_cast<int>(sizeof(T));
    const bool packed = width % v == 0 && aligned(dy, v) && (!z || aligned(z, v));
    const int64_t packs = width / (packed ? v : 1),
                  across = std::min<int64_t>((packs + warp - 1) / warp, 65535);
    with_activation(f, [&]<class F>(F) {
      launch(packed ? multiply_slope_and_sum<F, v, T> : multiply_slope_and_sum<F, 1, T>,
             LaunchGrid{dim3(static_cast<unsigned>(across), static_cast<unsigned>(count_)),
                        dim3(warp, tile_rows)},
             rows, width, (rows + count_ - 1) / count_, dy, z, parts_->data());
    });
  }

  void add_up() const {
    if (dbias_) sum_late(size_.out, count_, parts_, dbias_.data, dbias_.add);
  }

 private:
  LinearSize size_;
  Target<T> dbias_;
  int64_t count_;
  LateParts<T> parts_;
};

template <class T> void zero(int64_t n, Target<T> y) {
  if (!y.add) backend(Device::cuda).zero(y.data, static_cast<size_t>(n) * sizeof(T));
}

}  // namespace

template <>
template <class T>
void LinearKernels<Cuda>::backward(const LinearSize& size, Activation f, const T* dy, T* kept, const T* x,
                                   const T* weight, const LayerGradients<T>& gradients) {
  const Target<T> dx = gradients.dx, dweight = gradients.dweight, dbias = gradients.dbias;
  const T* dz = kept ? kept : dy;
  const BiasSums<T> bias(size, dbias);
  const DeepProduct<T> outer({true, false, size.out, size.in, size.rows, size.out, size.in, size.in},
                             dweight.data != nullptr);
  if (kept) bias.make(f, dy, kept);
  // The next step of the backward pass needs only dx, so the rest runs beside it, unless one tensor is
  // several of the inputs.
  const Branch beside(dx && (dweight || dbias) && dx.data != dweight.data && dx.data != dbias.data);
  beside.run([&] {
    if (!kept) bias.make(f, dy, kept);
    bias.add_up();
    if (dweight && size.rows > 0)
      outer.run(dz, x, dweight.data, dweight.add);
    else if (dweight)
      zero(size.out * size.in, dweight);
  });
  if (dx && size.out > 0)
    multiply({false, false, size.rows, size.in, size.out, size.out, size.in, size.in}, dz, weight, dx.data,
             dx.add);
  else if (dx)
    zero(size.rows * size.in, dx);
}

TESSERA_FOR_FLOATS(LinearKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(LinearKernels<Cuda>::backward)

}  // namespace tessera
