#include "engine/core/dispatch.h"
#include "engine/ops/norm_kernels.h"
#include "engine/ops/norm_rows_cuda.h"

namespace tessera {

using namespace norm_detail;

template <>
template <class T>
void ResidualNormKernels<Cuda>::forward(const ResidualSize& size, const T* x, const T* f, const T* weight,
                                        const T* bias, double eps, T* sum, T* y, Wide<T>* mean,
                                        Wide<T>* rstd) {
  const auto [rows, width] = size.rows;
  constexpr int v = neighbours<T>;
  const auto fits = [&](const T* p) { return aligned(p, v); };
  const bool paired =
      width % v == 0 && fits(x) && fits(f) && fits(weight) && fits(bias) && fits(sum) && fits(y);
  const int64_t warps_wanted = rows * warp;
  const bool held = with_held<T>(width, paired, [&]<int V, int count, bool full>() {
    launch(forward_held<T, V, count, full, true>, grid_for(warps_wanted), size.rows, x,
           residual_on(size, f, sum), weight, bias, Wide<T>(eps), y, mean, rstd);
  });
  if (held) return;
  DropoutKernels<Cuda>::drop_path(size.images(), size.p, size.key, x, f, Target<T>{sum});
  LayerNormKernels<Cuda>::forward(size.rows, static_cast<const T*>(sum), weight, bias, eps, y, mean, rstd);
}

template <>
template <class T>
void ResidualNormKernels<Cuda>::backward(const ResidualSize& size, const T* dy, const NormOperands<T>& norm,
                                         const LayerGradients<T>& gradients, T* df) {
  const T* no_branch = nullptr;
  if (size.rows.width <= most_held)
    return backward_rows(size.rows, BackwardInputs<T>{dy, norm.x, norm.weight, norm.mean, norm.rstd},
                         gradients, df ? residual_on(size, no_branch, df) : ResidualOn<T>{});
  LayerNormKernels<Cuda>::backward(size.rows, dy, norm.x, norm.weight, norm.mean, norm.rstd, gradients);
  if (df)
    DropoutKernels<Cuda>::drop_path(size.images(), size.p, size.key, no_branch,
                                    static_cast<const T*>(gradients.dx.data), Target<T>{df});
}

TESSERA_FOR_FLOATS(ResidualNormKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(ResidualNormKernels<Cuda>::backward)

}  // namespace tessera
