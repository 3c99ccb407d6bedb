#pragma once

// linear in bf16 by the processor's instructions for it; what LinearKernels<Cpu> calls where there are any.

#include "engine/cpu/bf16_gemm.h"
#include "engine/ops/linear_parts.h"

namespace tessera {

// As linear_forward() and LinearKernels<Cpu>::backward().
void linear_forward_bf16(const Bf16Kernels& kernels, const LinearSize& size, const bf16* x,
                         const bf16* weight, const bf16* bias, Activation f, bf16* y, bf16* slope,
                         const Finish& finish);
void linear_backward_bf16(const Bf16Kernels& kernels, const LinearSize& size, const bf16* dy, bf16* slope,
                          const bf16* x, const bf16* weight, const LayerGradients<bf16>& gradients);

}  // namespace tessera
