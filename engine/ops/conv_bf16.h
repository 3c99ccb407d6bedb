#pragma once

// The convolution in bf16 by the processor's instructions for it; what ConvKernels<Cpu> calls where there are
// any.

#include <vector>

#include "engine/cpu/bf16_gemm.h"
#include "engine/ops/conv_normed.h"

namespace tessera {

// As conv_forward() and ConvKernels<Cpu>::backward().
void conv_forward_bf16(const Bf16Kernels& kernels, const ConvSize& size, const bf16* x, const bf16* weight,
                       const bf16* bias, bf16* y, const Finish& finish);
void conv_backward_bf16(const Bf16Kernels& kernels, const ConvSize& size, const bf16* dy, const bf16* x,
                        const bf16* weight, const LayerGradients<bf16>& gradients);

// As depthwise_forward(); returns whether there is a function for these windows.
bool depthwise_forward_bf16(const Bf16Kernels& kernels, const ConvSize& size, const bf16* x,
                            const bf16* weight, const bf16* bias, bf16* y, const Finish& finish);

// The part of DepthwiseConvKernels<Cpu>::backward() that makes dx; returns whether there is a function for
// these windows.
bool depthwise_input_gradient_bf16(const Bf16Kernels& kernels, const ConvSize& size, const bf16* dy,
                                   const bf16* weight, const Target<bf16>& dx);

// The gradients of a depthwise convolution's taps, image by image.
class DepthwiseTapGradients {
 public:
  DepthwiseTapGradients(const Bf16Kernels& kernels, const ConvSize& size);

  // True where there is a function for these windows; otherwise add_image() must not be called.
  explicit operator bool() const { return gradient_ != nullptr; }

  // Adds an image's part to sums [kernel_h, kernel_w, width], whose width is whole panels of channels. Unless
  // it is the last one, another image follows in memory.
  void add_image(const bf16* dy, const bf16* x, bool last, float* sums, int64_t width) const;

 private:
  ConvSize size_;
  DepthwiseGradient gradient_;
  std::vector<bf16> zeros_;
};

}  // namespace tessera
