#pragma once

// The terms of attention's scores on the CPU: each in one vector loop over the keys of a row.

#include <algorithm>
#include <cstdint>

#include "engine/cpu/row_sums.h"
#include "engine/cpu/simd.h"
#include "engine/cpu/small_gemm.h"
#include "engine/ops/attention/attention.h"
#include "engine/ops/attention/panels.h"
#include "engine/ops/attention/score_terms.h"

namespace tessera {

// One head of one image.
template <class T> struct HeadOfImage {
  const AttentionSizes& sizes;
  const BatchTerms<T>& terms;
  int64_t image, head;
  bool image_follows =
      false;  // whether this head of the next image is computed next, instead of the next head
};

// Rows [first, first + count) of a head's scores.
struct QueryBlock {
  int64_t first, count, keys;
};

template <class W, class Term> void forward_term(const Term& term, const QueryBlock& block, Rows<W> s) {
  for (int64_t r = 0; r < block.count; ++r) {
    W* row = s.data + r * s.row;
#pragma omp simd
    for (int64_t j = 0; j < block.keys; ++j) row[j] = term.forward(row[j], {block.first + r, j, block.keys});
  }
}

// Applies all terms after the scale, by which the keys have been multiplied. `before_prior`, unless null,
// receives the scores that the prior's gradient needs.
template <class T>
void forward_terms(const HeadOfImage<T>& h, const QueryBlock& block, const Wide<T>* gate, Rows<Wide<T>> s,
                   Rows<Wide<T>> before_prior) {
  const BatchTerms<T>& t = h.terms;
  if (before_prior.data) std::copy_n(s.data, block.count * s.row, before_prior.data);
  if (t.prior) forward_term(t.prior_term(h.head, block.keys), block, s);
  if (t.bias) forward_term(t.bias_term(h.head, block.keys), block, s);
  if (t.slopes) forward_term(t.fixed_decay_term(h.head), block, s);
  if (gate) forward_term(t.content_decay_term(gate), block, s);
  if (t.mask) forward_term(t.mask_term(h.image, block.keys), block, s);
  if (!t.mask_diagonal) return;
  for (int64_t r = 0, i = block.first; r < block.count; ++r, ++i) {  // the term changes one element a row
    Wide<T>& s_ii = s.data[r * s.row + i];
    s_ii = DiagonalTerm<Wide<T>>().forward(s_ii, {i, i, block.keys});
  }
}

// Where one head's gradients of the terms are summed; null where not wanted.
template <class W> struct TermSums {
  W *prior = nullptr, *bias = nullptr;  // [N, N]
  W* gate = nullptr;                    // [N]
  Rows<W> own = {nullptr, 0};           // [1, N], with `gate`
};

// Adds the share of every ds_ij of the block to the gradients of gate_i and gate_j. `own` [keys] is memory
// for the shares of a row.
template <class W>
void backward_gates(const ContentDecayTerm<W>& decay, const QueryBlock& block, Rows<W> ds, Rows<W> own,
                    W* dgate) {
  fill_rows(own, 0, 1, W(0));
  for (int64_t r = 0, i = block.first; r < block.count; ++r, ++i) {
    const W* row = ds.data + r * ds.row;
#pragma omp simd
    for (int64_t j = 0; j < block.keys; ++j) {
      own.data[j] = decay.backward(row[j], 0, {i, j, block.keys}).own;
      dgate[j] += own.data[j];
    }
    dgate[i] += sum_of_row(own.row, own.data);
  }
}

// sum [N, N] += the share of every ds_ij in the gradient of the term's tensor. s holds the scores before the
// term; for a term that does not read them, ds is passed instead.
template <class W, class Term>
void backward_matrix(const Term& term, const QueryBlock& block, Rows<W> ds, Rows<W> s, W* sum) {
  for (int64_t r = 0, i = block.first; r < block.count; ++r, ++i) {
    const W *ds_row = ds.data + r * ds.row, *s_row = s.data + r * s.row;
    W* to = sum + i * block.keys;
#pragma omp simd
    for (int64_t j = 0; j < block.keys; ++j)
      to[j] += term.backward(ds_row[j], s_row[j], {i, j, block.keys}).own;
  }
}

// Takes ds from after the last term back to after the scale. Where a mask is -inf, P and ds are 0 already; a
// term that adds to the score leaves its gradient unchanged.
template <class T>
void backward_terms(const HeadOfImage<T>& h, const QueryBlock& block, const Wide<T>* gate,
                    Rows<Wide<T>> before_prior, Rows<Wide<T>> ds, const TermSums<Wide<T>>& sums) {
  const BatchTerms<T>& t = h.terms;
  if (sums.gate) backward_gates(t.content_decay_term(gate), block, ds, sums.own, sums.gate);
  if (sums.bias) backward_matrix(t.bias_term(h.head, block.keys), block, ds, ds, sums.bias);
  if (!t.prior) return;
  const auto prior = t.prior_term(h.head, block.keys);
  if (sums.prior) backward_matrix(prior, block, ds, before_prior, sums.prior);
  for (int64_t r = 0, i = block.first; r < block.count; ++r, ++i) {
    Wide<T>* row = ds.data + r * ds.row;
#pragma omp simd
    for (int64_t j = 0; j < block.keys; ++j) row[j] = prior.backward(row[j], 0, {i, j, block.keys}).ds;
  }
}

}  // namespace tessera
