#pragma once

// The parts of attention's CPU kernels that work on whole rows of scores: the terms, each in one vector loop
// over the keys, and the softmax.

#include <algorithm>
#include <cstdint>

#include "engine/cpu/row_sums.h"
#include "engine/cpu/simd.h"
#include "engine/cpu/small_gemm.h"
#include "engine/cpu/vector_math.h"
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

// Each function below makes one pass over all rows before the next begins, so that no row waits for the sum
// of the row before it. The columns are whole vectors.

template <class W> void row_maxima(int64_t rows, int64_t columns, Rows<W> s, W* maxima) {
  for (int64_t r = 0; r < rows; ++r) {
    const W* row = s.data + r * s.row;
    Vector<W> most = load_vector(row);
    for (int64_t j = lanes<W>; j < columns; j += lanes<W>) most = largest<W>(most, load_vector(row + j));
    maxima[r] = largest_of_lanes<W>(most);
  }
}

// s = exp(s - shift of the row), and the sums of the rows.
template <class W> void exponentials(int64_t rows, int64_t columns, Rows<W> s, const W* shifts, W* sums) {
  for (int64_t r = 0; r < rows; ++r) {
    W* row = s.data + r * s.row;
    Vector<W> sum{};
    for (int64_t j = 0; j < columns; j += lanes<W>) {
      const Vector<W> e = exp_of_differences(load_vector(row + j) - shifts[r]);
      store_vector(row + j, e);
      sum += e;
    }
    sums[r] = sum_of_lanes<W>(sum);
  }
}

// P = exp(s - lse) overwrites s; ds = P (dP - rowsum(P dP)) overwrites dP, which is passed as ds. (rowsum(P
// dP) = dy . y.) P is divided by its sum, which the rounding of s and lse leaves slightly off 1: otherwise ds
// would not sum to 0 over a row, and gradients that sum it over many rows (the learned scale's, the prior's)
// would be off. `means` and `shares` [rows] are memory for these sums.
template <class W>
void softmax_backward(int64_t rows, int64_t columns, Rows<W> s, Rows<W> ds, const W* lse, W* means,
                      W* shares) {
  for (int64_t r = 0; r < rows; ++r) {
    W *p_row = s.data + r * s.row, *ds_row = ds.data + r * ds.row;
    Vector<W> sum{}, mass{};
    for (int64_t j = 0; j < columns; j += lanes<W>) {
      const Vector<W> p = exp_of_differences(load_vector(p_row + j) - lse[r]);
      store_vector(p_row + j, p);
      sum += p * load_vector(ds_row + j);
      mass += p;
    }
    shares[r] = 1 / sum_of_lanes<W>(mass);
    means[r] = sum_of_lanes<W>(sum) * shares[r];
  }
  for (int64_t r = 0; r < rows; ++r) {
    W *p_row = s.data + r * s.row, *ds_row = ds.data + r * ds.row;
    for (int64_t j = 0; j < columns; j += lanes<W>) {
      const Vector<W> p = load_vector(p_row + j) * shares[r];
      store_vector(p_row + j, p);
      store_vector(ds_row + j, p * (load_vector(ds_row + j) - means[r]));
    }
  }
}

}  // namespace tessera
