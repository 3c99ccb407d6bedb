#pragma once

// Convolutions with windows of 3 x 3 pixels and stride 1 by minimal filtering, F(2 x 2, 3 x 3) of A. Lavin
// and S. Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016), after S. Winograd: 16
// products for the 36 of each square of 2 x 2 outputs. The square's pixels, the weight and the outputs are
// taken to 16 points by additions; at a point, the outputs are the pixels' channels times the weight's
// matrix.
//
// The gradient of x is the same convolution of dy by the flipped weight. That of the weight is summed at the
// points, of the pixels times dy taken there by the adjoint of the outputs' map, and is then taken back by
// the adjoint of the weight's. tests/ops/conv_test.cpp and the cases "minimal filtering" of conv2d check all
// three. conv_winograd_bf16.h does the first two in bf16.

#include "engine/ops/conv_kernels.h"
#include "engine/ops/finish.h"

namespace tessera {

// This says whether a convolution on the CPU is computed so. There must be channels enough that the products
// outweigh the additions, whole vectors of them for every processor, and squares that are not mostly padding.
inline bool by_winograd(const ConvSize& s) {
  constexpr int64_t vectors = 16;  // channels
  const int64_t squares = (s.out_h + 1) / 2 * ((s.out_w + 1) / 2);
  return s.kernel_h == 3 && s.kernel_w == 3 && s.stride == 1 && s.padding < 3 && s.in > 0 &&
         s.in % vectors == 0 && s.out > 0 && s.out % vectors == 0 &&
         squares * 16 * 3 <= s.positions() * 9 * 2;
}

// As ConvKernels<Cpu>::forward(), which calls `finish` for each part of y unless it is null, and backward(),
// for float and double.
template <class W>
void winograd_forward(const ConvSize& size, const W* x, const W* weight, const W* bias, W* y,
                      const Finish& finish);
template <class W>
void winograd_backward(const ConvSize& size, const W* dy, const W* x, const W* weight,
                       const LayerGradients<W>& gradients);

}  // namespace tessera
