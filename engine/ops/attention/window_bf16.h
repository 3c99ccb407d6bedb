#pragma once

// Attention in bf16 over windows of 16 tokens, as Swin's; what the functions of attention_bf16.h call for
// them.

#include "engine/cpu/bf16_gemm.h"
#include "engine/ops/attention/heads.h"

namespace tessera {

// True for a head of 16 tokens and of 32 or 64 numbers that has neither a prior nor gates.
bool is_window(const HeadOfImage<bf16>& h);

// As forward_head_bf16() and backward_head_bf16().
void forward_window_bf16(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h,
                         const TokenHeads<const bf16>& q, const TokenHeads<const bf16>& k,
                         const TokenHeads<const bf16>& v, const TokenHeads<bf16>& y, float* lse);
float backward_window_bf16(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h,
                           const BackwardHead<bf16>& io);

}  // namespace tessera
