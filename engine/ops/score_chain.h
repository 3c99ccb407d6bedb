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

  // s[e] = q . k becomes the score at at[e]. Some at once: whether a term is there is asked once for all of
  // them, and what it reads for them is on its way together.
  template <int count> TESSERA_HD void forward(W (&s)[count], const At (&at)[count]) const {
    const auto act = [&](const auto& term) {
      for (int e = 0; e < count; ++e) s[e] = term.forward(s[e], at[e]);
    };
    act(scale);
    if constexpr (terms == ChainTerms::any) {
      if (prior.omega) act(prior);
      if (bias.bias) act(bias);
      if (fixed_decay.distance) act(fixed_decay);
      if (content_decay.gate) act(content_decay);
      if (mask.mask) act(mask);
    }
    if (mask_diagonal) act(DiagonalTerm<W>());
  }

  // to[e].ds, the gradient of that score, goes back to scale * raw[e], and leaves each term's share. The
  // fixed decay and the mask pass it on as it is.
  template <int count>
  TESSERA_HD void backward(const W (&raw)[count], const At (&at)[count], ChainShares<W> (&to)[count]) const {
    for (int e = 0; mask_diagonal && e < count; ++e)
      to[e].ds = DiagonalTerm<W>().backward(to[e].ds, 0, at[e]).ds;
    if constexpr (terms == ChainTerms::any) {
      for (int e = 0; content_decay.gate && e < count; ++e)
        to[e].gate = content_decay.backward(to[e].ds, 0, at[e]).own;
      for (int e = 0; bias.bias && e < count; ++e) to[e].bias = bias.backward(to[e].ds, 0, at[e]).own;
      for (int e = 0; prior.omega && e < count; ++e) {
        const Shares<W> shares = prior.backward(to[e].ds, scale.forward(raw[e], at[e]), at[e]);
        to[e].ds = shares.ds;
        to[e].prior = shares.own;
      }
    }
    for (int e = 0; e < count; ++e) to[e].scale = scale.backward(to[e].ds, raw[e], at[e]).own;
  }
};

}  // namespace tessera
