#pragma once

// These functions compute attention of one head in float or double. AttentionKernels<Cpu> calls them for
// every type but bf16 on a processor with instructions for it (attention_bf16.h).

#include "engine/ops/attention/heads.h"

namespace tessera {

// y = softmax(s) v of one head; the log-sum-exp of each row if lse is not null.
template <class T>
void forward_head(const HeadOfImage<T>& h, const TokenHeads<const T>& q, const TokenHeads<const T>& k,
                  const TokenHeads<const T>& v, const TokenHeads<T>& y, Wide<T>* lse);

// The gradients of one head; returns d loss / d scale.
template <class T> Wide<T> backward_head(const HeadOfImage<T>& h, const BackwardHead<T>& io);

}  // namespace tessera
