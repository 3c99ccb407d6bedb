#include "engine/ops/attention/attention_bf16.h"

#include "engine/core/per_thread.h"
#include "engine/cpu/fast_math.h"
#include "engine/ops/attention/head_products.h"
#include "engine/ops/attention/window_bf16.h"

// As attention_cpu.cpp, with every product and the softmax by engine/cpu/bf16_gemm.h: q, k, v and dy are read
// as they lie, the probabilities and the gradients of the scores are rounded to bf16 where they become
// factors, and all sums are floats.

namespace tessera {

namespace {

// The working memory of one thread.
struct Memory {
  Panel<bf16> k, v, k_transposed, v_transposed;  // right factors: pairs along the depth
  Panel<bf16> q, dy, p, ds;                      // of a block of queries
  Panel<bf16> left_dy;                           // dy as a left factor, if it does not lie in pairs
  Panel<bf16> p_transposed, ds_transposed;       // left factors
  Panel<float> scores, dscores, before_prior;    // [block, keys]
  Panel<float> y, dq, wide_q, dk, dv;
  Panel<float> start, gate, dgate, own;  // [1, keys]
  Panel<float> maxima, sums;             // [1, block]

  static Memory& of_this_thread() {
    static const PerThread<Memory> memories;
    return memories.of_this_thread();
  }
};

constexpr FloatRows zeros{nullptr, 0};
constexpr float one = 1;

FloatTarget floats(Rows<float> rows) { return {rows.data, rows.row}; }
bf16* row_of(Rows<bf16> x, int64_t r) { return x.data + r * x.row; }

// How a head's queries are cut: blocks whose probabilities and gradients stay in the first cache until the
// products over all of the block's queries have read them, an even number where there are several, since
// rows become pairs of a depth; in them, parts whose scores are computed in floats.
struct QueryCut {
  int64_t block, part;

  QueryCut(int64_t queries, int64_t columns) : block(block_of_queries<bf16>(queries, columns)) {
    if (block < queries) block = 2 * pairs_of(block);
    part = std::min(block, chunk_length(30));  // whole blocks of the products' rows
  }
};

// True for a head whose rows of scores the kernels keep in registers: no wider than these are fast for, few
// keys, and no term to be applied to the scores but the scale and the diagonal mask.
bool stays_in_registers(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h) {
  return h.sizes.head_dim <= kernels.most_row_width && !h.terms.change_rows() && h.sizes.keys > 0 &&
         h.sizes.keys <= most_row_keys;
}

Tokens all_tokens(const HeadOfImage<bf16>& h, const TokenHeads<const bf16>& x, int64_t count) {
  return {tokens_of(h, x, count), x.stride, count};
}

// The scores of a head, whose keys have been packed.
class HeadScores {
 public:
  HeadScores(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h, const TokenHeads<const bf16>& k,
             const QueryCut& cut, Memory& work)
      : kernels_(kernels),
        products_(kernels, h.sizes.head_dim),
        h_(h),
        gate_(load_gates(h, work.gate)),
        factor_(h.terms.scale_term(h.head).factor),
        in_registers_(stays_in_registers(kernels, h)),
        k_(products_.columns(all_tokens(h, k, h.sizes.keys), in_registers_, work.k_transposed)),
        columns_(whole_bf16_vectors(h.sizes.keys)),
        most_(cut.part),
        start_(in_registers_ ? Rows<const float>{nullptr, 0}
                             : start_of_scores(h.sizes.keys, columns_, work.start)),
        s_(work.scores.fit(most_, columns_)) {}

  // p [block, keys] = exp(s - maximum), the maxima and the sums of the rows.
  void probabilities(const QueryBlock& block, const LeftPairs& q, Rows<bf16> p, float* maxima,
                     float* sums) const {
    if (in_registers_) return kernels_.probabilities(rows(block, q), p.data, p.row, maxima, sums);
    for (int64_t r = 0; r < block.count; r += most_) {
      const QueryBlock some = part(block, r);
      make(some, from_row(q, r), {nullptr, 0});
      kernels_.softmax(some.count, columns_, floats(s_), row_of(p, r), p.row, maxima + r, sums + r);
    }
  }

 protected:
  // Rows [r, r + most) of a block.
  QueryBlock part(const QueryBlock& block, int64_t r) const {
    return {block.first + r, std::min(most_, block.count - r), block.keys};
  }

  // s = terms(scale q k^T) of a part.
  void make(const QueryBlock& part, const LeftPairs& q, Rows<float> before_prior) const {
    products_.scores(part.count, columns_, q, k_.pairs, factor_, {start_.data, 0}, s_);
    forward_terms(h_, part, gate_, s_, before_prior);
  }

  ScoreRows rows(const QueryBlock& block, const LeftPairs& q) const {
    return {block.count, block.keys,  h_.sizes.head_dim,     q, k_.pairs, k_.last,
            factor_,     block.first, h_.terms.mask_diagonal};
  }

  const Bf16Kernels& kernels_;
  HeadProducts products_;
  const HeadOfImage<bf16>& h_;
  const float* gate_;
  float factor_;
  bool in_registers_;
  ScoreColumns k_;
  int64_t columns_, most_;
  Rows<const float> start_;
  Rows<float> s_;
};

}  // namespace

void forward_head_bf16(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h,
                       const TokenHeads<const bf16>& q_heads, const TokenHeads<const bf16>& k_heads,
                       const TokenHeads<const bf16>& v_heads, const TokenHeads<bf16>& y_heads, float* lse) {
  if (is_window(h)) return forward_window_bf16(kernels, h, q_heads, k_heads, v_heads, y_heads, lse);
  Memory& work = Memory::of_this_thread();
  const auto& [images, heads, queries, keys, d] = h.sizes;
  const HeadProducts products(kernels, d);
  const QueryCut cut(queries, whole_bf16_vectors(keys));
  prefetch_results(h, y_heads, queries);
  prefetch_next_head(h, q_heads, queries);
  prefetch_next_head(h, k_heads, keys);
  prefetch_next_head(h, v_heads, keys);
  const HeadScores scores(kernels, h, k_heads, cut, work);
  const RightPairs v = products.right(all_tokens(h, v_heads, keys), work.v);
  const Rows<bf16> p = work.p.fit(cut.block, whole_bf16_vectors(keys));
  const Rows<float> y = work.y.fit(cut.block, products.width());
  float *maxima = work.maxima.fit(1, cut.block).data, *sums = work.sums.fit(1, cut.block).data;
  for (int64_t i = 0; i < queries; i += cut.block) {
    const QueryBlock block{i, std::min(cut.block, queries - i), keys};
    const LeftPairs q =
        products.left({tokens_of(h, q_heads, queries, i), q_heads.stride, block.count}, work.q);
    scores.probabilities(block, q, p, maxima, sums);
    products.tokens(block.count, keys, {p.data, p.row, 2}, v, zeros, y);
    if (lse) {
#pragma omp simd
      for (int64_t r = 0; r < block.count; ++r) lse[i + r] = maxima[r] + fast_log(sums[r]);
    }
#pragma omp simd
    for (int64_t r = 0; r < block.count; ++r) sums[r] = 1 / sums[r];
    products.store(block.count, y, sums, 1, false, tokens_of(h, y_heads, queries, i), y_heads.stride);
  }
}

namespace {

// P and the gradients of the scores of a block of queries as left factors: those of dv, of dk and of dq.
struct ScoreLefts {
  LeftPairs p_transposed, ds_transposed, ds;
};

// The scores of a head and their gradients, a block of queries at a call.
class ScoreGradients : public HeadScores {
 public:
  ScoreGradients(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h, const BackwardHead<bf16>& io,
                 const TermSums<float>& sums, const QueryCut& cut, Memory& work)
      : HeadScores(kernels, h, io.k, cut, work),
        sums_(sums),
        v_(products_.columns(all_tokens(h, io.v, h.sizes.keys), in_registers_, work.v_transposed)),
        work_(work),
        p_(work.p.fit(cut.block, columns_)),
        ds_(work.ds.fit(cut.block, columns_)),
        dp_(work.dscores.fit(most_, columns_)),
        before_(sums.prior ? work.before_prior.fit(most_, columns_) : Rows<float>{nullptr, 0}),
        means_(work.sums.fit(1, most_).data),
        shares_(work.maxima.fit(1, most_).data) {}

  ScoreLefts operator()(const QueryBlock& block, const LeftPairs& q, const LeftPairs& dy,
                        const float* lse) const {
    const LeftPairs ds{ds_.data, ds_.row, 2};
    if (in_registers_) {
      const Rows<bf16> p_pairs = work_.p_transposed.fit(pairs_of(block.count), 2 * columns_),
                       ds_pairs = work_.ds_transposed.fit(pairs_of(block.count), 2 * columns_);
      kernels_.score_gradients(rows(block, q), {dy, v_.pairs, v_.last, lse},
                               {p_pairs.data, ds_pairs.data, p_pairs.row, ds_.data, ds_.row});
      return {{p_pairs.data, 2, p_pairs.row}, {ds_pairs.data, 2, ds_pairs.row}, ds};
    }
    for (int64_t r = 0; r < block.count; r += most_)
      gradients_of(part(block, r), from_row(q, r), from_row(dy, r), lse + r, row_of(p_, r), row_of(ds_, r));
    return {products_.left_of_transposed(block.count, block.keys, p_, work_.p_transposed),
            products_.left_of_transposed(block.count, block.keys, ds_, work_.ds_transposed), ds};
  }

 private:
  // p and ds of a part, in floats and rounded.
  void gradients_of(const QueryBlock& part, const LeftPairs& q, const LeftPairs& dy, const float* lse,
                    bf16* p, bf16* ds) const {
    const bool terms_follow = sums_.gate || sums_.bias || h_.terms.prior;
    make(part, q, before_);
    products_.scores(part.count, columns_, dy, v_.pairs, 1, zeros, dp_);
    kernels_.softmax_backward(part.count, columns_, floats(s_), floats(dp_), lse, p,
                              terms_follow ? nullptr : ds, p_.row, shares_, means_);
    if (!terms_follow) return;
    backward_terms(h_, part, gate_, before_, dp_, sums_);
    kernels_.store(part.count, columns_, {dp_.data, dp_.row}, &one, 0, false, ds, p_.row);
  }

  TermSums<float> sums_;
  ScoreColumns v_;
  Memory& work_;
  Rows<bf16> p_, ds_;
  Rows<float> dp_, before_;
  float *means_, *shares_;
};

}  // namespace

float backward_head_bf16(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h,
                         const BackwardHead<bf16>& io) {
  if (is_window(h)) return backward_window_bf16(kernels, h, io);
  Memory& work = Memory::of_this_thread();
  const auto& [images, heads, queries, keys, d] = h.sizes;
  const HeadProducts products(kernels, d);
  const int64_t width = products.width();
  const QueryCut cut(queries, whole_bf16_vectors(keys));
  const float scale = h.terms.scale_term(h.head).factor;
  prefetch_results(h, io.dq, queries);
  prefetch_results(h, io.dk, keys);
  prefetch_results(h, io.dv, keys);
  prefetch_next_head(h, io.q, queries);
  prefetch_next_head(h, io.k, keys);
  prefetch_next_head(h, io.v, keys);
  prefetch_next_head(h, io.dy, queries);
  const RightPairs k = products.right(all_tokens(h, io.k, keys), work.k);
  TermSums<float> sums = io.sums;
  if (io.dgates.data) {
    sums.gate = work.dgate.fit(1, keys).data;
    sums.own = work.own.fit(1, keys);
    std::fill_n(sums.gate, keys, 0.0f);
  }
  const ScoreGradients gradients(kernels, h, io, sums, cut, work);
  const Rows<float> dq = work.dq.fit(cut.block, width), wide_q = work.wide_q.fit(cut.block, width);
  const Rows<float> dk = work.dk.fit(keys, width), dv = work.dv.fit(keys, width);
  if (queries == 0) fill_rows(dk, 0, keys, 0.0f), fill_rows(dv, 0, keys, 0.0f);
  float dscale = 0;
  for (int64_t i = 0; i < queries; i += cut.block) {
    const QueryBlock block{i, std::min(cut.block, queries - i), keys};
    const Tokens q{tokens_of(h, io.q, queries, i), io.q.stride, block.count},
        dy{tokens_of(h, io.dy, queries, i), io.dy.stride, block.count};
    const ScoreLefts of =
        gradients(block, products.left(q, work.q), products.left(dy, work.left_dy), io.lse + i);
    // dv += P^T dy, dk += ds^T q, dq = ds k, dscale += ds . q k^T = (ds k) . q; the scale follows
    const FloatRows dv_before = i == 0 ? zeros : FloatRows(floats(dv)),
                    dk_before = i == 0 ? zeros : FloatRows(floats(dk));
    products.tokens(keys, block.count, of.p_transposed, products.right(dy, work.dy), dv_before, dv);
    products.tokens(keys, block.count, of.ds_transposed, products.right(q, work.dy), dk_before, dk);
    products.tokens(block.count, keys, of.ds, k, zeros, dq);
    if (h.terms.learned_scale) {
      load_rows(q.data, q.stride, q.count, d, wide_q);
      dscale += dot_product(block.count * width, dq.data, wide_q.data);
    }
    products.store(block.count, dq, &scale, 0, io.dq.add, tokens_of(h, io.dq, queries, i), io.dq.stride);
  }
  products.store(keys, dk, &scale, 0, io.dk.add, tokens_of(h, io.dk, keys), io.dk.stride);
  products.store(keys, dv, &one, 0, io.dv.add, tokens_of(h, io.dv, keys), io.dv.stride);
  if (sums.gate) store_gates(h, sums.gate, io.dgates);
  return dscale;
}

}  // namespace tessera
