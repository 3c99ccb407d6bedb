#pragma once

// The convolution in bf16 by the processor's instructions for it; what ConvKernels<Cpu> calls where there are
// any.

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

}  // namespace tessera
