#include "engine/core/dispatch.h"
#include "engine/ops/norm_kernels.h"
#include "engine/ops/residual_norm_kernels.h"

namespace tessera {

template <>
template <class T>
void ResidualNormKernels<Cpu>::forward(const ResidualSize& size, const T* x, const T* f, const T* weight,
                                       const T* bias, double eps, T* sum, T* y, Wide<T>* mean,
                                       Wide<T>* rstd) {
  DropoutKernels<Cpu>::drop_path(size.images(), size.p, size.key, x, f, Target<T>{sum});
  LayerNormKernels<Cpu>::forward(size.rows, static_cast<const T*>(sum), weight, bias, eps, y, mean, rstd);
}

template <>
template <class T>
void ResidualNormKernels<Cpu>::backward(const ResidualSize& size, const T* dy, const NormOperands<T>& norm,
                                        const LayerGradients<T>& gradients, T* df) {
  LayerNormKernels<Cpu>::backward(size.rows, dy, norm.x, norm.weight, norm.mean, norm.rstd, gradients);
  if (!df) return;
  DropoutKernels<Cpu>::drop_path(size.images(), size.p, size.key, static_cast<const T*>(nullptr),
                                 static_cast<const T*>(gradients.dx.data), Target<T>{df});
}

TESSERA_FOR_FLOATS(ResidualNormKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(ResidualNormKernels<Cpu>::backward)

}  // namespace tessera
