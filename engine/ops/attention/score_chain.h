#pragma once

// The terms of an attention score chained, for kernels that hold one score at a time in a register.

#include "engine/ops/attention/score_terms.h"

namespace tessera {

// The gradient of one score, taken back through the terms: `ds`, of scale * (q . k), and its share of the
// gradient of each term's own tensor, 0 for an absent term.
template <class W> struct ChainShares { W ds, scale, prior, bias, gate; };

// A set of terms besides the scale and the diagonal mask. A chain compiled for a known set skips the others;
// `any` tests for each term at every score, which takes up to three times as many instructions.
enum class ChainTerms : uint8_t {
  plain = 0,
  prior = 1,
  bias = 2,
  fixed_decay = 4,
  content_decay = 8,
  mask = 16,
  bias_and_mask = bias | mask,
  any = prior | bias | fixed_decay | content_decay | mask
};

constexpr bool may_have(ChainTerms terms, ChainTerms one) {
  return (static_cast<int>(terms) & static_cast<int>(one)) != 0;
}

template <class T> ChainTerms terms_of(const BatchTerms<T>& t) {
  int terms = 0;
  const auto add = [&](const void* there, ChainTerms one) { terms |= there ? static_cast<int>(one) : 0; };
  add(t.prior, ChainTerms::prior);
  add(t.bias, ChainTerms::bias);
  add(t.slopes, ChainTerms::fixed_decay);
  add(t.gates, ChainTerms::content_decay);
  add(t.mask, ChainTerms::mask);
  return static_cast<ChainTerms>(terms);
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
    if (has<ChainTerms::prior>(t.prior)) prior = t.prior_term(head, n);
    if (has<ChainTerms::bias>(t.bias)) bias = t.bias_term(head, n);
    if (has<ChainTerms::fixed_decay>(t.slopes)) fixed_decay = t.fixed_decay_term(head);
    if (has<ChainTerms::content_decay>(t.gates)) content_decay = t.content_decay_term(gate);
    if (has<ChainTerms::mask>(t.mask)) mask = t.mask_term(image, n);
  }

  // Turns s[e] = q . k into the score at at[e], for several scores at once: each term is tested for once, and
  // its loads for all of them overlap.
  template <int count> TESSERA_HD void forward(W (&s)[count], const At (&at)[count]) const {
    const auto act = [&](const auto& term) {
      for (int e = 0; e < count; ++e) s[e] = term.forward(s[e], at[e]);
    };
    act(scale);
    if (has<ChainTerms::prior>(prior.omega)) act(prior);
    if (has<ChainTerms::bias>(bias.bias)) act(bias);
    if (has<ChainTerms::fixed_decay>(fixed_decay.distance)) act(fixed_decay);
    if (has<ChainTerms::content_decay>(content_decay.gate)) act(content_decay);
    if (has<ChainTerms::mask>(mask.mask)) act(mask);
    if (mask_diagonal) act(DiagonalTerm<W>());
  }

  // Takes to[e].ds, the gradient of the score at at[e], back to scale * raw[e] and fills in each term's
  // share. The fixed decay and the mask leave ds unchanged.
  template <int count>
  TESSERA_HD void backward(const W (&raw)[count], const At (&at)[count], ChainShares<W> (&to)[count]) const {
    const auto each = [&](const auto& f) {
      for (int e = 0; e < count; ++e) f(to[e], raw[e], at[e]);
    };
    if (mask_diagonal)
      each([](auto& own, W, At place) { own.ds = DiagonalTerm<W>().backward(own.ds, 0, place).ds; });
    if (has<ChainTerms::content_decay>(content_decay.gate))
      each([&](auto& own, W, At place) { own.gate = content_decay.backward(own.ds, 0, place).own; });
    if (has<ChainTerms::bias>(bias.bias))
      each([&](auto& own, W, At place) { own.bias = bias.backward(own.ds, 0, place).own; });
    if (has<ChainTerms::prior>(prior.omega))
      each([&](auto& own, W product, At place) {
        const Shares<W> shares = prior.backward(own.ds, scale.forward(product, place), place);
        own.ds = shares.ds;
        own.prior = shares.own;
      });
    each([&](auto& own, W product, At place) { own.scale = scale.backward(own.ds, product, place).own; });
  }

 private:
  // Whether the term is present; known at compile time unless `terms` is any.
  template <ChainTerms one> TESSERA_HD static constexpr bool has(const void* there) {
    return may_have(terms, one) && (terms != ChainTerms::any || there != nullptr);
  }
};

}  // namespace tessera
