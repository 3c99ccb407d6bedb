#pragma once

// The terms of an attention score chained, for kernels that hold one score at a time in a register.

#include "engine/ops/score_terms.h"

namespace tessera {

// What a score's gradient leaves: `ds`, that of scale * (q . k), and its share of the gradient of each term's
// own tensor, 0 for a term that is absent.
template <class W> struct ChainShares { W ds, scale, prior, bias, gate; };

// Which terms a chain may have: any, each looked for at every score; or the scale and the diagonal's mask
// alone, a third of the instructions.
enum class ChainTerms : uint8_t { any, plain };

template <class T> ChainTerms terms_of(const BatchTerms<T>& t) {
  return t.prior || t.bias || t.slopes || t.gates || t.mask ? ChainTerms::any : ChainTerms::plain;
}

// All terms of one head of one image, in their order. `gate` [N] holds its gates without gaps (null without).
template <class T, ChainTerms terms = ChainTerms::any> struct ScoreChain {
  using W = Wide<T>;
  ScaleTerm<W> scale;
  PriorTerm<T> prior{nullptr};  // terms that are absent have null pointers
  BiasTerm<T> bias{nullptr};
  FixedDecayTerm<W> fixed_decay{0, nullptr};
  ContentDecayTerm<W> content_decay{0, nullptr, nullptr};
  MaskTerm<T> mask{nullptr};
  bool mask_diagonal;

  TESSERA_HD ScoreChain(const BatchTerms<T>& t, int64_t image, int64_t head, int64_t n, const W* gate)
      : scale(t.scale_term(head)), mask_diagonal(t.mask_diagonal) {
    if constexpr (terms == ChainTerms::plain) return;
    if (t.prior) prior = t.prior_term(head, n);
    if (t.bias) bias = t.bias_term(head, n);
    if (t.slopes) fixed_decay = t.fixed_decay_term(head);
    if (t.gates) content_decay = t.content_decay_term(gate);
    if (t.mask) mask = t.mask_term(image, n);
  }

  // The score of raw = q . k.
  TESSERA_HD W forward(W raw, At at) const {
    W s = scale.forward(raw, at);
    if constexpr (terms == ChainTerms::any) {
      if (prior.omega) s = prior.forward(s, at);
      if (bias.bias) s = bias.forward(s, at);
      if (fixed_decay.distance) s = fixed_decay.forward(s, at);
      if (content_decay.gate) s = content_decay.forward(s, at);
      if (mask.mask) s = mask.forward(s, at);
    }
    return mask_diagonal ? DiagonalTerm<W>().forward(s, at) : s;
  }

  // ds: the gradient of forward(raw, at). The fixed decay and the mask pass it on as it is.
  TESSERA_HD ChainShares<W> backward(W ds, W raw, At at) const {
    ChainShares<W> to{ds, 0, 0, 0, 0};
    if (mask_diagonal) to.ds = DiagonalTerm<W>().backward(to.ds, 0, at).ds;
    if constexpr (terms == ChainTerms::any) {
      if (content_decay.gate) to.gate = content_decay.backward(to.ds, 0, at).own;
      if (bias.bias) to.bias = bias.backward(to.ds, 0, at).own;
      if (prior.omega) {
        const Shares<W> shares = prior.backward(to.ds, scale.forward(raw, at), at);
        to.ds = shares.ds;
        to.prior = shares.own;
      }
    }
    to.scale = scale.backward(to.ds, raw, at).own;
    return to;
  }
};

}  // namespace tessera
