#include "engine/ops/attention/attention_bf16.h"

#include "engine/core/per_thread.h"
#include "engine/cpu/fast_math.h"
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
  Panel<bf16> left;                              // a left factor that does not lie in pairs
  Panel<float> scores, dscores, before_prior;    // [block, keys]
  Panel<float> y, dq, wide_q, dk, dv;
  Panel<float> start, gate, dgate, own;  // [1, keys]
  Panel<float> maxima, sums;             // [1, block]

  static Memory& of_this_thread() {
    static const PerThread<Memory> memories;
    return memories.of_this_thread();
  }
};

// The tokens of one head: `count` rows of d numbers.
struct Tokens {
  const bf16* data;
  int64_t stride, count;
};

constexpr FloatRows zeros{nullptr, 0};
constexpr float one = 1;

FloatTarget floats(Rows<float> rows) { return {rows.data, rows.row}; }
LeftPairs from_row(const LeftPairs& x, int64_t r) { return {x.data + r * x.row, x.row, x.pair}; }
bf16* row_of(Rows<bf16> x, int64_t r) { return x.data + r * x.row; }

// The products of one head.
class HeadProducts {
 public:
  HeadProducts(const Bf16Kernels& kernels, int64_t d) : kernels_(kernels), d_(d) {}

  // x [count, d] as a right factor of depth `count`.
  RightPairs right(const Tokens& x, Panel<bf16>& panel) const {
    const Rows<bf16> to = panel.fit(pairs_of(x.count), 2 * width());
    kernels_.interleave(x.count, d_, x.data, x.stride, to.data, to.row);
    return {to.data, to.row};
  }

  // x^T [d, count] as a right factor of depth d.
  RightPairs right_of_transposed(const Tokens& x, Panel<bf16>& panel) const {
    const Rows<bf16> to = panel.fit(pairs_of(d_), 2 * whole_bf16_vectors(x.count));
    kernels_.interleave_transposed(d_, x.count, x.data, x.stride, to.data, to.row);
    return {to.data, to.row};
  }

  // x [count, d] as a left factor of depth d: where it lies, if its rows are whole pairs.
  LeftPairs left(const Tokens& x, Panel<bf16>& panel) const {
    if (d_ % 2 == 0) return {x.data, x.stride, 2};
    const Rows<bf16> to = panel.fit(x.count, d_ + 1);
    for (int64_t i = 0; i < x.count; ++i) {
      std::copy_n(x.data + i * x.stride, d_, to.data + i * to.row);
      to.data[i * to.row + d_] = bf16(0.0f);
    }
    return {to.data, to.row, 2};
  }

  // The transpose of x [count, columns] as a left factor of depth `count`.
  LeftPairs left_of_transposed(int64_t count, int64_t columns, Rows<bf16> x, Panel<bf16>& panel) const {
    bf16* memory = panel.fit(1, left_elements(count, columns)).data;
    return kernels_.left_of_transposed(count, columns, x.data, x.row, memory);
  }

  // s [count, columns] = start + factor a b, of depth d
  void scores(int64_t count, int64_t columns, const LeftPairs& a, RightPairs b, float factor, FloatRows start,
              Rows<float> s) const {
    kernels_.multiply(count, columns, pairs_of(d_), a, b, factor, start, floats(s));
  }

  // y [rows, d] = start + a b of the given depth
  void tokens(int64_t rows, int64_t depth, const LeftPairs& a, RightPairs b, FloatRows start,
              Rows<float> y) const {
    kernels_.multiply(rows, width(), pairs_of(depth), a, b, 1, start, floats(y));
  }

  // The rows of a head, each times its factor (or all times one, `step` 0), rounded to where they belong.
  void store(int64_t rows, Rows<const float> from, const float* factors, int64_t step, bool add, bf16* to,
             int64_t stride) const {
    if (to) kernels_.store(rows, d_, {from.data, from.row}, factors, step, add, to, stride);
  }

  int64_t width() const { return whole_bf16_vectors(d_); }  // columns of d sums

 private:
  const Bf16Kernels& kernels_;
  int64_t d_;
};

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

}  // namespace

void forward_head_bf16(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h,
                       const TokenHeads<const bf16>& q_heads, const TokenHeads<const bf16>& k_heads,
                       const TokenHeads<const bf16>& v_heads, const TokenHeads<bf16>& y_heads, float* lse) {
  if (is_window(h)) return forward_window_bf16(kernels, h, q_heads, k_heads, v_heads, y_heads, lse);
  Memory& work = Memory::of_this_thread();
  const auto& [images, heads, queries, keys, d] = h.sizes;
  const HeadProducts products(kernels, d);
  const int64_t columns = whole_bf16_vectors(keys);
  const QueryCut cut(queries, columns);
  const float scale = h.terms.scale_term(h.head).factor;
  prefetch_results(h, y_heads, queries);
  prefetch_next_head(h, q_heads, queries);
  prefetch_next_head(h, k_heads, keys);
  prefetch_next_head(h, v_heads, keys);
  const RightPairs kt =
      products.right_of_transposed({tokens_of(h, k_heads, keys), k_heads.stride, keys}, work.k_transposed);
  const RightPairs v = products.right({tokens_of(h, v_heads, keys), v_heads.stride, keys}, work.v);
  const Rows<const float> start = start_of_scores(keys, columns, work.start);
  const float* gate = load_gates(h, work.gate);
  const Rows<float> s = work.scores.fit(cut.part, columns), y = work.y.fit(cut.block, products.width());
  const Rows<bf16> p = work.p.fit(cut.block, columns);
  float *maxima = work.maxima.fit(1, cut.block).data, *sums = work.sums.fit(1, cut.block).data;
  for (int64_t i = 0; i < queries; i += cut.block) {
    const QueryBlock block{i, std::min(cut.block, queries - i), keys};
    const LeftPairs q =
        products.left({tokens_of(h, q_heads, queries, i), q_heads.stride, block.count}, work.q);
    for (int64_t r = 0; r < block.count; r += cut.part) {
      const QueryBlock part{i + r, std::min(cut.part, block.count - r), keys};
      products.scores(part.count, columns, from_row(q, r), kt, scale, {start.data, 0}, s);
      forward_terms(h, part, gate, s, {nullptr, 0});
      kernels.softmax(part.count, columns, floats(s), row_of(p, r), p.row, maxima + r, sums + r);
    }
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

// P and the gradients of the scores of a head, by parts in floats, rounded to factors of products.
class ScoreGradients {
 public:
  ScoreGradients(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h, const TermSums<float>& sums,
                 const float* gate, RightPairs kt, RightPairs vt, const QueryCut& cut, Memory& work)
      : kernels_(kernels),
        products_(kernels, h.sizes.head_dim),
        h_(h),
        sums_(sums),
        gate_(gate),
        kt_(kt),
        vt_(vt),
        columns_(whole_bf16_vectors(h.sizes.keys)),
        most_(cut.part),
        start_(start_of_scores(h.sizes.keys, columns_, work.start)),
        s_(work.scores.fit(most_, columns_)),
        ds_(work.dscores.fit(most_, columns_)),
        before_(sums.prior ? work.before_prior.fit(most_, columns_) : Rows<float>{nullptr, 0}),
        means_(work.sums.fit(1, most_).data),
        shares_(work.maxima.fit(1, most_).data) {}

  // The call computes p and ds of a block of queries. q, dy [block, d]; p, ds [block, keys]
  void operator()(const QueryBlock& block, LeftPairs q, LeftPairs dy, const float* lse, Rows<bf16> p,
                  Rows<bf16> ds) const {
    for (int64_t r = 0; r < block.count; r += most_)
      part({block.first + r, std::min(most_, block.count - r), block.keys}, from_row(q, r), from_row(dy, r),
           lse + r, row_of(p, r), row_of(ds, r), p.row);
  }

 private:
  // s = terms(scale q k^T), dP = dy v^T
  void part(const QueryBlock& part, LeftPairs q, LeftPairs dy, const float* lse, bf16* p, bf16* ds,
            int64_t stride) const {
    const bool terms_follow = sums_.gate || sums_.bias || h_.terms.prior;
    products_.scores(part.count, columns_, q, kt_, h_.terms.scale_term(h_.head).factor, {start_.data, 0}, s_);
    products_.scores(part.count, columns_, dy, vt_, 1, zeros, ds_);
    forward_terms(h_, part, gate_, s_, before_);
    kernels_.softmax_backward(part.count, columns_, floats(s_), floats(ds_), lse, p,
                              terms_follow ? nullptr : ds, stride, shares_, means_);
    if (!terms_follow) return;
    backward_terms(h_, part, gate_, before_, ds_, sums_);
    kernels_.store(part.count, columns_, {ds_.data, ds_.row}, &one, 0, false, ds, stride);
  }

  const Bf16Kernels& kernels_;
  HeadProducts products_;
  const HeadOfImage<bf16>& h_;
  const TermSums<float>& sums_;
  const float* gate_;
  RightPairs kt_, vt_;
  int64_t columns_, most_;
  Rows<const float> start_;
  Rows<float> s_, ds_, before_;
  float *means_, *shares_;
};

}  // namespace

float backward_head_bf16(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h,
                         const BackwardHead<bf16>& io) {
  if (is_window(h)) return backward_window_bf16(kernels, h, io);
  Memory& work = Memory::of_this_thread();
  const auto& [images, heads, queries, keys, d] = h.sizes;
  const HeadProducts products(kernels, d);
  const int64_t columns = whole_bf16_vectors(keys), width = products.width();
  const QueryCut cut(queries, columns);
  const float scale = h.terms.scale_term(h.head).factor;
  prefetch_results(h, io.dq, queries);
  prefetch_results(h, io.dk, keys);
  prefetch_results(h, io.dv, keys);
  prefetch_next_head(h, io.q, queries);
  prefetch_next_head(h, io.k, keys);
  prefetch_next_head(h, io.v, keys);
  prefetch_next_head(h, io.dy, queries);
  const Tokens all_k{tokens_of(h, io.k, keys), io.k.stride, keys},
      all_v{tokens_of(h, io.v, keys), io.v.stride, keys};
  const RightPairs kt = products.right_of_transposed(all_k, work.k_transposed),
                   vt = products.right_of_transposed(all_v, work.v_transposed),
                   k = products.right(all_k, work.k);
  TermSums<float> sums = io.sums;
  if (io.dgates.data) {
    sums.gate = work.dgate.fit(1, keys).data;
    sums.own = work.own.fit(1, keys);
    std::fill_n(sums.gate, keys, 0.0f);
  }
  const ScoreGradients gradients(kernels, h, sums, load_gates(h, work.gate), kt, vt, cut, work);
  const Rows<bf16> p = work.p.fit(cut.block, columns), ds = work.ds.fit(cut.block, columns);
  const Rows<float> dq = work.dq.fit(cut.block, width), wide_q = work.wide_q.fit(cut.block, width);
  const Rows<float> dk = work.dk.fit(keys, width), dv = work.dv.fit(keys, width);
  if (queries == 0) fill_rows(dk, 0, keys, 0.0f), fill_rows(dv, 0, keys, 0.0f);
  float dscale = 0;
  for (int64_t i = 0; i < queries; i += cut.block) {
    const QueryBlock block{i, std::min(cut.block, queries - i), keys};
    const Tokens q{tokens_of(h, io.q, queries, i), io.q.stride, block.count},
        dy{tokens_of(h, io.dy, queries, i), io.dy.stride, block.count};
    gradients(block, products.left(q, work.q), products.left(dy, work.left), io.lse + i, p, ds);
    // dv += P^T dy, dk += ds^T q, dq = ds k, dscale += ds . q k^T = (ds k) . q; the scale follows
    const FloatRows dv_before = i == 0 ? zeros : FloatRows(floats(dv)),
                    dk_before = i == 0 ? zeros : FloatRows(floats(dk));
    products.tokens(keys, block.count, products.left_of_transposed(block.count, keys, p, work.left),
                    products.right(dy, work.dy), dv_before, dv);
    products.tokens(keys, block.count, products.left_of_transposed(block.count, keys, ds, work.left),
                    products.right(q, work.dy), dk_before, dk);
    products.tokens(block.count, keys, {ds.data, ds.row, 2}, k, zeros, dq);
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
