#pragma once

// The terms of an attention score, in the order in which they act:
//
//   s = scale * (q . k)  ->  * prior  ->  + bias  ->  + decay  ->  masks  ->  softmax
//
// Each is one small struct for one image and one head. forward(s, at) is the score after the term;
// backward(ds, s, at), with s the score before the term and ds the gradient after it, gives the gradient
// before the term and this score's share of the gradient of the term's own tensor. W is float or double, T
// what memory holds.

#include <cstdint>
#include <limits>

#include "engine/core/device.h"
#include "engine/core/dtype.h"

namespace tessera {

// The position of a score in its matrix [queries, keys].
struct At {
  int64_t i, j, keys;
  TESSERA_HD int64_t element() const { return i * keys + j; }
};

template <class W> struct Shares { W ds, own; };

// s = factor * s: 1 / sqrt(d), or LSA's learned one.
template <class W> struct ScaleTerm {
  W factor;
  TESSERA_HD W forward(W s, At = {}) const { return factor * s; }
  TESSERA_HD Shares<W> backward(W ds, W s, At = {}) const { return {factor * ds, s * ds}; }
};

// s = s * omega_ij: SP-SA's prior.
template <class T> struct PriorTerm {
  using W = Wide<T>;
  const T* omega;  // [N, N]
  TESSERA_HD W forward(W s, At at) const { return s * W(omega[at.element()]); }
  TESSERA_HD Shares<W> backward(W ds, W s, At at) const { return {ds * W(omega[at.element()]), ds * s}; }
};

// s = s + b_ij: Swin's relative position bias.
template <class T> struct BiasTerm {
  using W = Wide<T>;
  const T* bias;  // [N, N]
  TESSERA_HD W forward(W s, At at) const { return s + W(bias[at.element()]); }
  TESSERA_HD Shares<W> backward(W ds, W, At) const { return {ds, ds}; }
};

// s = s - slope * d_ij: RMT's fixed decay. The slope is a constant.
template <class W> struct FixedDecayTerm {
  W slope;
  const W* distance;  // [N, N]
  TESSERA_HD W forward(W s, At at) const { return s - slope * distance[at.element()]; }
  TESSERA_HD Shares<W> backward(W ds, W, At) const { return {ds, 0}; }
};

// s = s - |a|, a = alpha * d_ij * (g_i + g_j) / 2: SDT's context-aware gating. The same share is added to the
// gradients of g_i and g_j.
template <class W> struct ContentDecayTerm {
  W alpha;
  const W* distance;  // [N, N]
  const W* gate;      // [N]
  TESSERA_HD W forward(W s, At at) const {
    const W a = strength(at) * (gate[at.i] + gate[at.j]);
    return s - (a < 0 ? -a : a);
  }
  TESSERA_HD Shares<W> backward(W ds, W, At at) const {
    const W da = strength(at), a = da * (gate[at.i] + gate[at.j]);
    return {ds, a < 0 ? ds * da : a > 0 ? -ds * da : W(0)};  // the slope of -|a| at 0 is taken as 0
  }
  TESSERA_HD W strength(At at) const { return alpha * distance[at.element()] / 2; }
};

// s = s + m_ij, m a constant: Swin's -inf (or -100) between tokens of different windows that a shift has
// placed side by side.
template <class T> struct MaskTerm {
  using W = Wide<T>;
  const T* mask;  // [N, N]
  TESSERA_HD W forward(W s, At at) const { return s + W(mask[at.element()]); }
  TESSERA_HD Shares<W> backward(W ds, W, At) const { return {ds, 0}; }
};

// s_ii = value, -inf for LSA: a token does not attend to itself.
template <class W> struct DiagonalTerm {
  W value = -std::numeric_limits<W>::infinity();
  TESSERA_HD W forward(W s, At at) const { return at.i == at.j ? value : s; }
  TESSERA_HD Shares<W> backward(W ds, W, At at) const { return {at.i == at.j ? W(0) : ds, 0}; }
};

// The terms of a whole batch as pointers: null for a term that is absent.
template <class T> struct BatchTerms {
  using W = Wide<T>;
  W scale = 1;                        // where learned_scale is null
  const T* learned_scale = nullptr;   // [H]
  const T* prior = nullptr;           // [prior_heads, N, N]
  int64_t prior_heads = 0;            // H, or 1: shared by the heads
  const T* bias = nullptr;            // [H, N, N]
  const T* slopes = nullptr;          // [H]
  const W* slope_distance = nullptr;  // [N, N]: d of the fixed decay
  const T* gates = nullptr;           // [B, N, H]
  const W* gate_distance = nullptr;   // [N, N]: d of the content decay
  W alpha = 1;
  const T* mask = nullptr;  // [masks, N, N]: image b takes b % masks
  int64_t masks = 0;
  bool mask_diagonal = false;

  // True if a term besides the scale and the diagonal mask acts on the scores.
  bool change_rows() const { return prior || bias || slopes || gates || mask; }

  TESSERA_HD ScaleTerm<W> scale_term(int64_t head) const {
    return {learned_scale ? W(learned_scale[head]) : scale};
  }
  TESSERA_HD PriorTerm<T> prior_term(int64_t head, int64_t n) const {
    return {prior + (prior_heads == 1 ? 0 : head * n * n)};
  }
  TESSERA_HD BiasTerm<T> bias_term(int64_t head, int64_t n) const { return {bias + head * n * n}; }
  TESSERA_HD FixedDecayTerm<W> fixed_decay_term(int64_t head) const {
    return {W(slopes[head]), slope_distance};
  }
  // `gate` [N] holds this image's and head's gates without gaps.
  TESSERA_HD ContentDecayTerm<W> content_decay_term(const W* gate) const {
    return {alpha, gate_distance, gate};
  }
  TESSERA_HD MaskTerm<T> mask_term(int64_t image, int64_t n) const { return {mask + image % masks * n * n}; }
};

}  // namespace tessera
