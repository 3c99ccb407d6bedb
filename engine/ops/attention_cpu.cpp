#include <cmath>
#include <limits>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/core/storage.h"
#include "engine/ops/attention_kernels.h"
#include "engine/ops/attention_panels.h"
#include "engine/ops/each.h"
#include "engine/ops/fast_math.h"
#include "engine/ops/small_gemm.h"

namespace tessera {

namespace {

// One thread's panels.
template <class W> struct Workspace {
  Panel<W> q, k, v, dy, k_transposed, v_transposed;  // one head's, a block of queries at a time
  Panel<W> scores, ds, before_prior;                 // [block, keys]
  Panel<W> out, dq, dk, dv;
  Panel<W> start, gate, dgate;  // one row a key

  static Workspace& of_this_thread() {
    thread_local Workspace workspace;
    return workspace;
  }
};

// One head of one image: where its tokens begin.
template <class T> struct Head {
  const AttentionSizes& sizes;
  const BatchTerms<T>& terms;
  int64_t image, head;

  template <class U> U* at(const TokenHeads<U>& x, int64_t tokens, int64_t first = 0) const {
    return x.data ? x.data + (image * tokens + first) * x.stride + head * sizes.head_dim : nullptr;
  }
  int64_t matrix() const { return image * sizes.heads + head; }
};

// As many queries at a time as leave their scores and gradients in the first cache, in blocks of near equal
// size.
template <class W> int64_t block_of_queries(int64_t queries, int64_t key_columns) {
  constexpr int64_t cache = 24 << 10;
  const int64_t row = 2 * std::max<int64_t>(1, key_columns) * static_cast<int64_t>(sizeof(W));
  const int64_t most = std::max<int64_t>(8, cache / row);
  const int64_t blocks = std::max<int64_t>(1, (queries + most - 1) / most);
  return (queries + blocks - 1) / blocks;
}

// All keys (or values) of a head as rows, zeros after them.
template <class T>
Rows<Wide<T>> load_all(const Head<T>& h, const TokenHeads<const T>& x, Panel<Wide<T>>& panel) {
  const int64_t keys = h.sizes.keys, padded = whole_vectors<Wide<T>>(keys);
  const Rows<Wide<T>> rows = panel.fit(padded, h.sizes.head_dim);
  load_rows(h.at(x, keys), x.stride, keys, h.sizes.head_dim, rows);
  fill_rows(rows, keys, padded, Wide<T>(0));
  return rows;
}

template <class W> Rows<W> transposed(W factor, Rows<const W> rows, int64_t keys, Panel<W>& panel) {
  const Rows<W> result = panel.fit(rows.row, keys);
  transpose_rows(factor, rows, result.row, result);
  return result;
}

// A row to start the scores from: 0 for a key, -inf for the columns after the last, which count for nothing.
template <class W> Rows<const W> start_of_scores(int64_t keys, Panel<W>& panel) {
  const Rows<W> start = panel.fit(1, keys);
  std::fill_n(start.data, keys, W(0));
  std::fill(start.data + keys, start.data + start.row, -std::numeric_limits<W>::infinity());
  return {start.data, 0};
}

// This head's gates without gaps, where there are any.
template <class T> const Wide<T>* load_gates(const Head<T>& h, Panel<Wide<T>>& panel) {
  if (!h.terms.gates) return nullptr;
  const int64_t n = h.sizes.keys, heads = h.sizes.heads;
  Wide<T>* gate = panel.fit(1, n).data;
  for (int64_t i = 0; i < n; ++i) gate[i] = Wide<T>(h.terms.gates[(h.image * n + i) * heads + h.head]);
  return gate;
}

// --- the terms, along whole rows of scores: rows [first, first + count) of the matrix, keys columns ---

struct Block {
  int64_t first, count, keys;
};

template <class W, class Term> void forward_term(const Term& term, const Block& block, Rows<W> s) {
  for (int64_t r = 0; r < block.count; ++r) {
    W* row = s.data + r * s.row;
#pragma omp simd
    for (int64_t j = 0; j < block.keys; ++j) row[j] = term.forward(row[j], {block.first + r, j, block.keys});
  }
}

// Those after the scale, which the keys bring along already. `before_prior` is left the scores that the
// prior's gradient needs, if it has memory.
template <class T>
void forward_terms(const Head<T>& h, const Block& block, const Wide<T>* gate, Rows<Wide<T>> s,
                   Rows<Wide<T>> before_prior) {
  using W = Wide<T>;
  const BatchTerms<T>& t = h.terms;
  if (before_prior.data) std::copy_n(s.data, block.count * s.row, before_prior.data);
  if (t.prior) forward_term(t.prior_term(h.head, block.keys), block, s);
  if (t.bias) forward_term(t.bias_term(h.head, block.keys), block, s);
  if (t.slopes) forward_term(t.fixed_decay_term(h.head), block, s);
  if (gate) forward_term(t.content_decay_term(gate), block, s);
  if (t.mask) forward_term(t.mask_term(h.image, block.keys), block, s);
  if (t.mask_diagonal)
    for (int64_t r = 0; r < block.count; ++r) {  // the only element of the row that the term changes
      W& s_ii = s.data[r * s.row + block.first + r];
      s_ii = DiagonalTerm<W>().forward(s_ii, {block.first + r, block.first + r, block.keys});
    }
}

// Where one head's gradients of the terms are summed; null where not wanted.
template <class W> struct TermSums {
  W *prior = nullptr, *bias = nullptr;  // [N, N]
  W* gate = nullptr;                    // [N]
};

// ds of the block, from the last term to the first but the scale. Where a mask is -inf, P and ds are 0
// already.
template <class T>
void backward_terms(const Head<T>& h, const Block& block, const Wide<T>* gate,
                    Rows<const Wide<T>> before_prior, Rows<Wide<T>> ds, const TermSums<Wide<T>>& sums) {
  using W = Wide<T>;
  const BatchTerms<T>& t = h.terms;
  const int64_t n = block.keys;
  for (int64_t r = 0; r < block.count; ++r) {
    const int64_t i = block.first + r;
    W* row = ds.data + r * ds.row;
    if (sums.gate) {
      const auto decay = t.content_decay_term(gate);
      W of_query = 0;
#pragma omp simd reduction(+ : of_query)
      for (int64_t j = 0; j < n; ++j) {
        const W own = decay.backward(row[j], 0, {i, j, n}).own;
        sums.gate[j] += own;
        of_query += own;
      }
      sums.gate[i] += of_query;
    }
    if (sums.bias) {
      const auto bias = t.bias_term(h.head, n);
      W* sum = sums.bias + i * n;
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) sum[j] += bias.backward(row[j], 0, {i, j, n}).own;
    }
    if (t.prior) {
      const auto prior = t.prior_term(h.head, n);
      const W* before = sums.prior ? before_prior.data + r * before_prior.row : row;
      W* sum = sums.prior ? sums.prior + i * n : nullptr;
      if (sum) {
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) sum[j] += prior.backward(row[j], before[j], {i, j, n}).own;
      }
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) row[j] = prior.backward(row[j], 0, {i, j, n}).ds;
    }
  }
}

// --- the softmax of a block's rows ---

// s becomes exp(s - max); its sum and maximum are returned.
template <class W> struct RowSoftmax { W max, sum; };

template <class W> RowSoftmax<W> exponentials(W* s, int64_t columns) {
  W max = -std::numeric_limits<W>::infinity(), sum = 0;
#pragma omp simd reduction(max : max)
  for (int64_t j = 0; j < columns; ++j) max = s[j] > max ? s[j] : max;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < columns; ++j) {
    s[j] = fast_exp(s[j] - max);
    sum += s[j];
  }
  return {max, sum};
}

// P = exp(s - lse) in s's place; ds = P (dP - rowsum(P dP)) in dP's. (rowsum(P dP) = dy . y.)
template <class W> void softmax_backward(W* s, W* ds, W lse, int64_t columns) {
  W mean = 0;
#pragma omp simd reduction(+ : mean)
  for (int64_t j = 0; j < columns; ++j) {
    s[j] = fast_exp(s[j] - lse);
    mean += s[j] * ds[j];
  }
#pragma omp simd
  for (int64_t j = 0; j < columns; ++j) ds[j] = s[j] * (ds[j] - mean);
}

// --- one head of one image ---

template <class T>
void forward_head(const Head<T>& h, const TokenHeads<const T>& q, const TokenHeads<const T>& k,
                  const TokenHeads<const T>& v, const TokenHeads<T>& y, Wide<T>* lse) {
  using W = Wide<T>;
  auto& work = Workspace<W>::of_this_thread();
  const auto& [images, heads, queries, keys, d] = h.sizes;
  const Rows<W> k_rows = load_all(h, k, work.k), v_rows = load_all(h, v, work.v);
  // scale (q . k) = q . (scale k): the term on d numbers a key instead of one a pair
  const Rows<W> kt =
      transposed<W>(h.terms.scale_term(h.head).factor, {k_rows.data, k_rows.row}, keys, work.k_transposed);
  const Rows<const W> start = start_of_scores(keys, work.start);
  const W* gate = load_gates(h, work.gate);
  const int64_t most = block_of_queries<W>(queries, kt.row);
  const Rows<W> q_rows = work.q.fit(most, d), s = work.scores.fit(most, keys), out = work.out.fit(most, d);
  for (int64_t i = 0; i < queries; i += most) {
    const Block block{i, std::min(most, queries - i), keys};
    load_rows(h.at(q, queries, i), q.stride, block.count, d, q_rows);
    small_gemm<W>(block.count, kt.row, d, {q_rows.data, q_rows.row, 1}, {kt.data, kt.row}, start, s);
    forward_terms(h, block, gate, s, {nullptr, 0});
    W* inverse = work.dq.fit(1, most).data;
    for (int64_t r = 0; r < block.count; ++r) {
      const auto [max, sum] = exponentials(s.data + r * s.row, s.row);
      inverse[r] = 1 / sum;
      if (lse) lse[i + r] = max + std::log(sum);
    }
    small_gemm<W>(block.count, out.row, keys, {s.data, s.row, 1}, {v_rows.data, v_rows.row}, {nullptr, 0},
                  out);
    for (int64_t r = 0; r < block.count; ++r)
      store_rows<T>({out.data + r * out.row, out.row}, 1, d, inverse[r], h.at(y, queries, i + r), y.stride,
                    false);
  }
}

// What one head's backward reads and writes.
template <class T> struct BackwardHead {
  using W = Wide<T>;
  TokenHeads<const T> q, k, v, dy;
  TokenHeads<T> dq, dk, dv;
  const W* lse;      // [Nq]
  TermSums<W> sums;  // of prior and bias; the gates' are made here
  Target<T> dgates;
};

// dq of a block from its `raw` form, ds k without the scale; q . raw is what the block adds to dscale.
template <class T>
Wide<T> finish_queries(const ScaleTerm<Wide<T>>& scale, int64_t rows, int64_t columns, Rows<const Wide<T>> q,
                       Rows<Wide<T>> raw) {
  using W = Wide<T>;
  W dscale = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const W* q_row = q.data + r * q.row;
    W* row = raw.data + r * raw.row;
#pragma omp simd reduction(+ : dscale)
    for (int64_t c = 0; c < columns; ++c) dscale += scale.backward(row[c], q_row[c]).own;
  }
  return dscale;
}

// Returns d loss / d scale.
template <class T> Wide<T> backward_head(const Head<T>& h, const BackwardHead<T>& io) {
  using W = Wide<T>;
  auto& work = Workspace<W>::of_this_thread();
  const auto& [images, heads, queries, keys, d] = h.sizes;
  const ScaleTerm<W> scale = h.terms.scale_term(h.head);
  const Rows<W> k = load_all(h, io.k, work.k), v = load_all(h, io.v, work.v);
  const Rows<W> kt = transposed<W>(scale.factor, {k.data, k.row}, keys, work.k_transposed);
  const Rows<W> vt = transposed<W>(1, {v.data, v.row}, keys, work.v_transposed);
  const Rows<const W> start = start_of_scores(keys, work.start), none{nullptr, 0};
  const W* gate = load_gates(h, work.gate);
  TermSums<W> sums = io.sums;
  if (io.dgates.data) {
    sums.gate = work.dgate.fit(1, keys).data;
    std::fill_n(sums.gate, keys, W(0));
  }
  const int64_t most = block_of_queries<W>(queries, kt.row);
  const Rows<W> q = work.q.fit(most, d), dy = work.dy.fit(most, d), dq = work.dq.fit(most, d);
  const Rows<W> s = work.scores.fit(most, keys), ds = work.ds.fit(most, keys);
  const Rows<W> before = sums.prior ? work.before_prior.fit(most, keys) : Rows<W>{nullptr, 0};
  const Rows<W> dk = work.dk.fit(keys, d), dv = work.dv.fit(keys, d);
  fill_rows(dk, 0, keys, W(0));
  fill_rows(dv, 0, keys, W(0));
  W dscale = 0;
  for (int64_t i = 0; i < queries; i += most) {
    const Block block{i, std::min(most, queries - i), keys};
    load_rows(h.at(io.q, queries, i), io.q.stride, block.count, d, q);
    load_rows(h.at(io.dy, queries, i), io.dy.stride, block.count, d, dy);
    // s = terms(q k^T), dP = dy v^T
    small_gemm<W>(block.count, kt.row, d, {q.data, q.row, 1}, {kt.data, kt.row}, start, s);
    small_gemm<W>(block.count, vt.row, d, {dy.data, dy.row, 1}, {vt.data, vt.row}, none, ds);
    forward_terms(h, block, gate, s, before);
    for (int64_t r = 0; r < block.count; ++r)
      softmax_backward(s.data + r * s.row, ds.data + r * ds.row, io.lse[i + r], s.row);
    backward_terms(h, block, gate, {before.data, before.row}, ds, sums);
    // dv += P^T dy, dk += ds^T q, dq = ds k
    if (io.dv.data)
      small_gemm<W>(keys, dv.row, block.count, {s.data, 1, s.row}, {dy.data, dy.row}, {dv.data, dv.row}, dv);
    if (io.dk.data)
      small_gemm<W>(keys, dk.row, block.count, {ds.data, 1, ds.row}, {q.data, q.row}, {dk.data, dk.row}, dk);
    small_gemm<W>(block.count, dq.row, keys, {ds.data, ds.row, 1}, {k.data, k.row}, none, dq);
    if (h.terms.learned_scale) dscale += finish_queries<T>(scale, block.count, d, {q.data, q.row}, dq);
    if (io.dq.data)
      store_rows<T>({dq.data, dq.row}, block.count, d, scale.factor, h.at(io.dq, queries, i), io.dq.stride,
                    io.dq.add);
  }
  if (io.dk.data)
    store_rows<T>({dk.data, dk.row}, keys, d, scale.factor, h.at(io.dk, keys), io.dk.stride, io.dk.add);
  if (io.dv.data) store_rows<T>({dv.data, dv.row}, keys, d, W(1), h.at(io.dv, keys), io.dv.stride, io.dv.add);
  if (sums.gate)
    for (int64_t j = 0; j < keys; ++j) {
      T& target = io.dgates.data[(h.image * keys + j) * heads + h.head];
      target = T(io.dgates.add ? W(target) + sums.gate[j] : sums.gate[j]);
    }
  return dscale;
}

// --- gradients that the images share ---

// A sum for each chunk of images, so that it does not depend on the threads. [chunks, elements]
template <class W> class PartialSums {
 public:
  PartialSums(bool wanted, int64_t chunks, int64_t elements)
      : chunks_(chunks),
        elements_(elements),
        memory_(Device::cpu, wanted ? static_cast<size_t>(chunks * elements) * sizeof(W) : 0),
        wanted_(wanted) {}

  W* chunk(int64_t c) const { return wanted_ ? static_cast<W*>(memory_.data()) + c * elements_ : nullptr; }

  // target [count] = the sum over the chunks, and over the elements that lie `count` apart.
  template <class T> void total(const Target<T>& target, int64_t count) const {
    if (!wanted_ || count == 0) return;
    const W* parts = chunk(0);
    const int64_t terms = chunks_ * elements_ / count;
    parallel_write(count, target.data, target.add, [=](int64_t i) {
      W sum = 0;
      for (int64_t p = 0; p < terms; ++p) sum += parts[p * count + i];
      return sum;
    });
  }

 private:
  int64_t chunks_, elements_;
  Storage memory_;
  bool wanted_;
};

// Images whose gradients of prior and bias are summed together: few sums, of bounded memory.
int64_t images_a_chunk(const AttentionSizes& s, bool matrices) {
  if (!matrices) return 1;
  constexpr int64_t most_chunks = 8, most_elements = 1 << 24;
  const int64_t fitting = most_elements / std::max<int64_t>(1, s.heads * s.keys * s.keys);
  const int64_t chunks = std::clamp<int64_t>(fitting, 1, most_chunks);
  return std::max<int64_t>(1, (s.images + chunks - 1) / chunks);
}

}  // namespace

template <>
template <class T>
void AttentionKernels<Cpu>::forward(const AttentionSizes& sizes, TokenHeads<const T> q, TokenHeads<const T> k,
                                    TokenHeads<const T> v, const BatchTerms<T>& terms, T* y, Wide<T>* lse) {
  const TokenHeads<T> out{y, sizes.heads * sizes.head_dim};
  parallel_for(sizes.images * sizes.heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      const Head<T> head{sizes, terms, m / sizes.heads, m % sizes.heads};
      forward_head(head, q, k, v, out, lse ? lse + m * sizes.queries : nullptr);
    }
  });
}

template <>
template <class T>
void AttentionKernels<Cpu>::backward(const AttentionSizes& sizes, TokenHeads<const T> q,
                                     TokenHeads<const T> k, TokenHeads<const T> v, const BatchTerms<T>& terms,
                                     const Wide<T>* lse, const T* dy, const AttentionGradients<T>& to) {
  using W = Wide<T>;
  const int64_t heads = sizes.heads, matrix = sizes.keys * sizes.keys;
  const int64_t grain = images_a_chunk(sizes, to.dprior.data || to.dbias.data);
  const int64_t chunks = (sizes.images + grain - 1) / grain;
  const PartialSums<W> scale(to.dscale.data, chunks, heads), prior(to.dprior.data, chunks, heads * matrix),
      bias(to.dbias.data, chunks, heads * matrix);
  parallel_for(chunks * heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t c = task / heads, head = task % heads;
      BackwardHead<T> io{q, k, v, {dy, heads * sizes.head_dim}, to.dq, to.dk, to.dv, nullptr, {}, to.dgates};
      const auto sum_of_head = [&](const PartialSums<W>& sums) {
        W* sum = sums.chunk(c);
        return sum ? std::fill_n(sum + head * matrix, matrix, W(0)) - matrix : nullptr;
      };
      io.sums.prior = sum_of_head(prior);
      io.sums.bias = sum_of_head(bias);
      W dscale = 0;
      for (int64_t image = c * grain; image < std::min(sizes.images, (c + 1) * grain); ++image) {
        io.lse = lse + (image * heads + head) * sizes.queries;
        dscale += backward_head(Head<T>{sizes, terms, image, head}, io);
      }
      if (W* sum = scale.chunk(c)) sum[head] = dscale;
    }
  });
  scale.total(to.dscale, heads);
  prior.total(to.dprior, terms.prior_heads * matrix);
  bias.total(to.dbias, heads * matrix);
}

TESSERA_FOR_FLOATS(AttentionKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(AttentionKernels<Cpu>::backward)

}  // namespace tessera
