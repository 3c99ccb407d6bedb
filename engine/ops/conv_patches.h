#pragma once

// Convolutions whose windows tile the map, as those that embed patches do: each pixel lies in one window, so
// they are linear maps of the windows, and their gradients are linear's, which sums over all images at once.

#include "engine/ops/conv_kernels.h"

namespace tessera {

inline bool tiles_map(const ConvSize& s) {
  return s.padding == 0 && s.kernel_h == s.stride && s.kernel_w == s.stride &&
         s.out_h * s.stride == s.height && s.out_w * s.stride == s.width;
}

// As ConvKernels<Cpu>::forward() and backward(), for sizes that tile the map.
template <class T>
void patches_forward(const ConvSize& size, const T* x, const T* weight, const T* bias, T* y);
template <class T>
void patches_backward(const ConvSize& size, const T* dy, const T* x, const T* weight,
                      const LayerGradients<T>& gradients);

}  // namespace tessera
