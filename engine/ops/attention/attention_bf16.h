#pragma once

// Attention in bf16 by the processor's instructions for it; what AttentionKernels<Cpu> calls where there are
// any.

#include "engine/cpu/bf16_gemm.h"
#include "engine/ops/attention/heads.h"

namespace tessera {

// y = softmax(s) v of one head; the log-sum-exp of each row if lse is not null.
void forward_head_bf16(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h,
                       const TokenHeads<const bf16>& q, const TokenHeads<const bf16>& k,
                       const TokenHeads<const bf16>& v, const TokenHeads<bf16>& y, float* lse);

// The gradients of one head; returns d loss / d scale.
float backward_head_bf16(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h,
                         const BackwardHead<bf16>& io);

}  // namespace tessera
