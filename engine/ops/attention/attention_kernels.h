#pragma once

#include <cstdint>

#include "engine/ops/attention/attention.h"
#include "engine/ops/attention/score_terms.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// The heads of B images of N tokens, in place: token n of image b begins at data + (b N + n) stride, and its
// head h at h * head_dim. For a gradient, data and add mean what they mean in Target.
template <class T> struct TokenHeads {
  T* data = nullptr;
  int64_t stride = 0;
  bool add = false;
};

template <class T> struct AttentionGradients {
  TokenHeads<T> dq, dk, dv;
  Target<T> dscale;  // [H], of learned_scale
  Target<T> dprior;  // the prior's shape
  Target<T> dbias;   // [H, N, N]
  Target<T> dgates;  // [B, N, H]
};

template <class Dev> struct AttentionKernels {
  // y [B, Nq, H d]; lse [B, H, Nq], the log-sum-exp of each row of scores, may be null.
  template <class T>
  static void forward(const AttentionSizes& sizes, TokenHeads<const T> q, TokenHeads<const T> k,
                      TokenHeads<const T> v, const BatchTerms<T>& terms, T* y, Wide<T>* lse);

  // dy [B, Nq, H d]
  template <class T>
  static void backward(const AttentionSizes& sizes, TokenHeads<const T> q, TokenHeads<const T> k,
                       TokenHeads<const T> v, const BatchTerms<T>& terms, const Wide<T>* lse, const T* dy,
                       const AttentionGradients<T>& gradients);
};

}  // namespace tessera
