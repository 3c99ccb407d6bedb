#include "engine/ops/attention/window_bf16.h"

#include "engine/cpu/fast_math.h"

namespace tessera {

namespace {

// A matrix of scores or of their gradients.
struct alignas(64) Square {
  float of[window_tokens * window_tokens];

  Rows<float> rows() { return {of, window_tokens}; }
};

template <class T> WindowRows window_of(const HeadOfImage<bf16>& h, const TokenHeads<T>& x) {
  return {tokens_of(h, x, window_tokens), x.stride};
}
WindowTarget target_of(const HeadOfImage<bf16>& h, const TokenHeads<bf16>& x) {
  return {tokens_of(h, x, window_tokens), x.stride, x.add};
}

// The scores of a head after its terms.
void make_scores(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h, const WindowRows& q,
                 const WindowRows& k, Square& s) {
  kernels.window_scores(h.sizes.head_dim, q, k, h.terms.scale_term(h.head).factor, s.of);
  forward_terms(h, {0, window_tokens, window_tokens}, nullptr, s.rows(), {nullptr, 0});
}

}  // namespace

// A prior and gates change the gradients of the scores before these become factors.
bool is_window(const HeadOfImage<bf16>& h) {
  const auto& [images, heads, queries, keys, d] = h.sizes;
  return queries == window_tokens && keys == window_tokens && (d == 32 || d == 64) && !h.terms.prior &&
         !h.terms.gates;
}

void forward_window_bf16(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h,
                         const TokenHeads<const bf16>& q, const TokenHeads<const bf16>& k,
                         const TokenHeads<const bf16>& v, const TokenHeads<bf16>& y, float* lse) {
  prefetch_results(h, y, window_tokens);
  prefetch_next_head(h, q, window_tokens);
  prefetch_next_head(h, k, window_tokens);
  prefetch_next_head(h, v, window_tokens);
  Square s;
  make_scores(kernels, h, window_of(h, q), window_of(h, k), s);
  float maxima[window_tokens], sums[window_tokens];
  kernels.window_values(h.sizes.head_dim, s.of, window_of(h, v), maxima, sums, target_of(h, y));
  if (!lse) return;
#pragma omp simd
  for (int64_t i = 0; i < window_tokens; ++i) lse[i] = maxima[i] + fast_log(sums[i]);
}

float backward_window_bf16(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h,
                           const BackwardHead<bf16>& io) {
  for (const TokenHeads<bf16>& result : {io.dq, io.dk, io.dv}) prefetch_results(h, result, window_tokens);
  for (const TokenHeads<const bf16>& read : {io.q, io.k, io.v, io.dy})
    prefetch_next_head(h, read, window_tokens);
  const WindowRows q = window_of(h, io.q), k = window_of(h, io.k), dy = window_of(h, io.dy);
  Square s, dp;
  make_scores(kernels, h, q, k, s);
  kernels.window_scores(h.sizes.head_dim, dy, window_of(h, io.v), 1, dp.of);
  return kernels.window_gradients({h.sizes.head_dim, s.of, dp.of, io.lse, q, k, dy,
                                   h.terms.scale_term(h.head).factor, h.terms.learned_scale != nullptr,
                                   target_of(h, io.dq), target_of(h, io.dk), target_of(h, io.dv),
                                   io.sums.bias});
}

}  // namespace tessera
