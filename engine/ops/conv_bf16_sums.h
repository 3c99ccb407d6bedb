#pragma once

// The gradients of a convolution's weight and bias in bf16, summed in float.

#include "engine/cpu/bf16_gemm.h"
#include "engine/ops/conv_parts.h"

namespace tessera {

// How they are summed: for each output the rows of the kernel one after the other, each in whole vectors.
ConvSums bf16_sums(const ConvSize& size);

// Adds an image's part of d weight, [out, kernel_h, a row], and of d bias, which may be null.
void add_bf16_sums(const Bf16Kernels& kernels, const ConvSize& size, const bf16* dy, const bf16* image,
                   float* dweight, float* dbias);

}  // namespace tessera
