#include "engine/ops/attention/attention_float.h"

#include "engine/core/dispatch.h"
#include "engine/core/per_thread.h"
#include "engine/cpu/small_gemm.h"
#include "engine/ops/attention/softmax_rows.h"

// Tokens are copied into rows of whole vectors. The scores of a block of queries, and their gradients, are
// stored and read again by each step: block_of_queries() says how many stay in the first cache.

namespace tessera {

namespace {

// The working memory of one thread.
template <class W> struct Memory {
  Panel<W> k, v, k_transposed, v_transposed, dk, dv;  // all keys of a head
  Panel<W> q, y, dq, dy;                              // a block of its queries
  Panel<W> scores, ds, before_prior;                  // [block, keys]
  Panel<W> start, zeros, gate, dgate, own;            // [1, keys]
  Panel<W> maxima, sums, last_s, last_ds;             // [1, block]

  static Memory& of_this_thread() {
    static const PerThread<Memory> memories;
    return memories.of_this_thread();
  }
};

// All keys (or values) of a head as rows, followed by rows of zeros up to whole vectors.
template <class T>
Rows<Wide<T>> load_all(const HeadOfImage<T>& h, const TokenHeads<const T>& x, Panel<Wide<T>>& panel) {
  const int64_t keys = h.sizes.keys, padded = whole_vectors<Wide<T>>(keys);
  const Rows<Wide<T>> rows = panel.fit(padded, h.sizes.head_dim);
  load_rows(tokens_of(h, x, keys), x.stride, keys, h.sizes.head_dim, rows);
  fill_rows(rows, keys, padded, Wide<T>(0));
  return rows;
}

// factor * rows^T: [d, keys]
template <class W> Rows<W> transposed(W factor, Rows<W> rows, int64_t keys, Panel<W>& panel) {
  const Rows<W> result = panel.fit_apart(rows.row, keys);
  transpose_rows(factor, rows, whole_vectors<W>(keys), result);
  return result;
}

// The row of zeros that other products start from.
template <class W> Rows<const W> zero_row(int64_t columns, Panel<W>& panel) {
  const Rows<W> zeros = panel.fit(1, columns);
  fill_rows(zeros, 0, 1, W(0));
  return {zeros.data, 0};
}

// A Plan says how the scores of a head are made. The scores of a key that follows whole vectors of keys are
// made apart, unless terms change whole rows.
template <class T> struct Plan {
  using W = Wide<T>;

  bool last_apart;
  int64_t together;  // keys whose scores lie in rows
  int64_t columns;   // of the rows: whole vectors
  int64_t block;     // queries at a time

  explicit Plan(const HeadOfImage<T>& h)
      : last_apart(!h.terms.change_rows() && h.sizes.keys > lanes<W> && h.sizes.keys % lanes<W> == 1),
        together(h.sizes.keys - (last_apart ? 1 : 0)),
        columns(whole_vectors<W>(together)),
        block(block_of_queries<W>(h.sizes.queries, columns)) {}
};

// The lines of this head's results and of what the next head reads, which the products of scores ask for.
template <class T> class HeadAhead {
 public:
  explicit HeadAhead(const HeadOfImage<T>& h) : h_(h) {}

  void reads(const TokenHeads<const T>& x, int64_t tokens) {
    lines_.add(next_tokens(h_, x, tokens), tokens, x.stride, h_.sizes.head_dim);
  }
  void writes(const TokenHeads<T>& x, int64_t tokens) {
    lines_.add(tokens_of(h_, x, tokens), tokens, x.stride, h_.sizes.head_dim);
  }

  // Spreads them over so many products.
  LinesAhead* over(int64_t products, int64_t columns) {
    lines_.spread(products * gemm_blocks<Wide<T>>(h_.sizes.queries, columns));
    return &lines_;
  }

 private:
  const HeadOfImage<T>& h_;
  LinesAhead lines_;
};

// The scores of the last key, if they are made apart.
template <class T, class W = Wide<T>>
LastKey<W> scores_of_last(const HeadOfImage<T>& h, const Plan<T>& plan, const QueryBlock& block, Rows<W> q,
                          Rows<W> k, Memory<W>& work) {
  if (!plan.last_apart) return {};
  const int64_t key = block.keys - 1, own = key - block.first;
  W* s = work.last_s.fit(1, block.count).data;
  inner_products<W>(block.count, q.row, q, k.data + key * k.row, h.terms.scale_term(h.head).factor, s);
  if (h.terms.mask_diagonal && own >= 0 && own < block.count)
    s[own] = DiagonalTerm<W>().forward(s[own], {key, key, block.keys});
  return {s, nullptr, key};
}

// The gradients dP of the last key beside its scores.
template <class W>
LastKey<W> with_gradients(const LastKey<W>& last, const QueryBlock& block, Rows<W> dy, Rows<W> v,
                          Memory<W>& work) {
  if (!last.s) return last;
  W* ds = work.last_ds.fit(1, block.count).data;
  inner_products<W>(block.count, dy.row, dy, v.data + last.column * v.row, W(1), ds);
  return {last.s, ds, last.column};
}

}  // namespace

template <class T>
void forward_head(const HeadOfImage<T>& h, const TokenHeads<const T>& q_heads,
                  const TokenHeads<const T>& k_heads, const TokenHeads<const T>& v_heads,
                  const TokenHeads<T>& y_heads, Wide<T>* lse) {
  using W = Wide<T>;
  auto& work = Memory<W>::of_this_thread();
  const auto& [images, heads, queries, keys, d] = h.sizes;
  const Plan<T> plan(h);
  const Rows<W> k = load_all(h, k_heads, work.k), v = load_all(h, v_heads, work.v);
  // scale (q . k) = q . (scale k): scaling the keys is cheaper than scaling every score
  const Rows<W> kt = transposed(h.terms.scale_term(h.head).factor, k, keys, work.k_transposed);
  const int64_t columns = plan.columns, most = plan.block;
  const Rows<const W> start = start_of_scores(plan.together, columns, work.start),
                      zeros = zero_row(d, work.zeros);
  const W* gate = load_gates(h, work.gate);
  const Rows<W> q = work.q.fit(most, d), s = work.scores.fit_apart(most, keys), y = work.y.fit(most, d);
  W *maxima = work.maxima.fit(1, most).data, *sums = work.sums.fit(1, most).data;
  HeadAhead<T> ahead(h);
  ahead.writes(y_heads, queries);
  ahead.reads(q_heads, queries);
  for (const TokenHeads<const T>& x : {k_heads, v_heads}) ahead.reads(x, keys);
  LinesAhead* const lines = ahead.over(1, columns);
  for (int64_t i = 0; i < queries; i += most) {
    const QueryBlock block{i, std::min(most, queries - i), keys};
    load_rows(tokens_of(h, q_heads, queries, i), q_heads.stride, block.count, d, q);
    small_gemm<W>(block.count, columns, d, {q.data, q.row, 1}, kt, start, s, lines);
    forward_terms(h, block, gate, s, {nullptr, 0});
    const LastKey<W> last = scores_of_last(h, plan, block, q, k, work);
    row_maxima(block.count, columns, s, last, maxima);
    exponentials(block.count, columns, s, last, maxima, sums);
    small_gemm<W>(block.count, y.row, keys, {s.data, s.row, 1}, v, zeros, y);
    store_rows<T>(
        y, block.count, d, [=](int64_t r) { return 1 / sums[r]; }, tokens_of(h, y_heads, queries, i),
        y_heads.stride, false);
    if (!lse) continue;
#pragma omp simd
    for (int64_t r = 0; r < block.count; ++r) lse[i + r] = maxima[r] + fast_log(sums[r]);
  }
}

template <class T> Wide<T> backward_head(const HeadOfImage<T>& h, const BackwardHead<T>& io) {
  using W = Wide<T>;
  auto& work = Memory<W>::of_this_thread();
  const auto& [images, heads, queries, keys, d] = h.sizes;
  const W scale = h.terms.scale_term(h.head).factor;
  const auto scaled = [=](int64_t) { return scale; };
  const Plan<T> plan(h);
  const Rows<W> k = load_all(h, io.k, work.k), v = load_all(h, io.v, work.v);
  const Rows<W> kt = transposed(scale, k, keys, work.k_transposed),
                vt = transposed(W(1), v, keys, work.v_transposed);
  const int64_t columns = plan.columns, most = plan.block;
  const Rows<const W> start = start_of_scores(plan.together, columns, work.start),
                      zeros = zero_row(std::max(keys, d), work.zeros);
  const W* gate = load_gates(h, work.gate);
  TermSums<W> sums = io.sums;
  if (io.dgates.data) {
    sums.gate = work.dgate.fit(1, keys).data;
    sums.own = work.own.fit(1, keys);
    std::fill_n(sums.gate, keys, W(0));
  }
  const Rows<W> q = work.q.fit(most, d), dy = work.dy.fit(most, d), dq = work.dq.fit(most, d);
  const Rows<W> s = work.scores.fit_apart(most, keys), ds = work.ds.fit_apart(most, keys);
  const Rows<W> before = sums.prior ? work.before_prior.fit_apart(most, keys) : Rows<W>{nullptr, 0};
  const Rows<W> dk = work.dk.fit(keys, d), dv = work.dv.fit(keys, d);
  W *means = work.sums.fit(1, most).data, *shares = work.maxima.fit(1, most).data;
  fill_rows(dk, 0, keys, W(0));
  fill_rows(dv, 0, keys, W(0));
  HeadAhead<T> ahead(h);
  ahead.writes(io.dq, queries);
  for (const TokenHeads<T>& x : {io.dk, io.dv}) ahead.writes(x, keys);
  for (const TokenHeads<const T>& x : {io.q, io.dy}) ahead.reads(x, queries);
  for (const TokenHeads<const T>& x : {io.k, io.v}) ahead.reads(x, keys);
  LinesAhead* const lines = ahead.over(2, columns);
  W dscale = 0;
  for (int64_t i = 0; i < queries; i += most) {
    const QueryBlock block{i, std::min(most, queries - i), keys};
    load_rows(tokens_of(h, io.q, queries, i), io.q.stride, block.count, d, q);
    load_rows(tokens_of(h, io.dy, queries, i), io.dy.stride, block.count, d, dy);
    // s = terms(scale q k^T), dP = dy v^T
    small_gemm<W>(block.count, columns, d, {q.data, q.row, 1}, kt, start, s, lines);
    small_gemm<W>(block.count, columns, d, {dy.data, dy.row, 1}, vt, zeros, ds, lines);
    forward_terms(h, block, gate, s, before);
    const LastKey<W> last = with_gradients(scores_of_last(h, plan, block, q, k, work), block, dy, v, work);
    softmax_backward(block.count, columns, s, ds, last, io.lse + i, means, shares);
    backward_terms(h, block, gate, before, ds, sums);
    // dv += P^T dy, dk += scale ds^T q, dq = scale ds k, dscale += ds . q k^T = (ds k) . q
    small_gemm<W>(keys, dv.row, block.count, {s.data, 1, s.row}, dy, dv, dv);
    small_gemm<W>(keys, dk.row, block.count, {ds.data, 1, ds.row}, q, dk, dk);
    small_gemm<W>(block.count, dq.row, keys, {ds.data, ds.row, 1}, k, zeros, dq);
    if (h.terms.learned_scale) dscale += dot_product(block.count * q.row, dq.data, q.data);
    if (T* to = tokens_of(h, io.dq, queries, i))
      store_rows<T>(dq, block.count, d, scaled, to, io.dq.stride, io.dq.add);
  }
  if (T* to = tokens_of(h, io.dk, keys)) store_rows<T>(dk, keys, d, scaled, to, io.dk.stride, io.dk.add);
  if (T* to = tokens_of(h, io.dv, keys))
    store_rows<T>(
        dv, keys, d, [](int64_t) { return W(1); }, to, io.dv.stride, io.dv.add);
  if (sums.gate) store_gates(h, sums.gate, io.dgates);
  return dscale;
}

TESSERA_FOR_FLOATS(forward_head)
TESSERA_FOR_FLOATS(backward_head)

}  // namespace tessera
