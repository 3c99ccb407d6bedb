#include "engine/ops/attention/attention_bf16.h"

#include "engine/core/per_thread.h"
#include "engine/cpu/fast_math.h"

// As attention_cpu.cpp, with every product by engine/cpu/bf16_gemm.h: q, k, v and dy are read as they lie,
// the probabilities and the gradients of the scores are rounded to bf16 where they become factors, and all
// sums are floats.

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
  void scores(int64_t count, int64_t columns, LeftPairs a, RightPairs b, float factor, FloatRows start,
              Rows<float> s) const {
    kernels_.multiply(count, columns, pairs_of(d_), a, b, factor, start, floats(s));
  }

  // y [rows, d] = start + a b of the given depth
  void tokens(int64_t rows, int64_t depth, LeftPairs a, RightPairs b, FloatRows start, Rows<float> y) const {
    kernels_.multiply(rows, width(), pairs_of(depth), a, b, 1, start, floats(y));
  }

  // The rows of a head, each times its factor (or all times one, `step` 0), rounded to where they belong.
  void store(int64_t rows, Rows<const float> from, const float* factors, int64_t step, bool add, bf16* to,
             int64_t stride) const {
    if (to) kernels_.store(rows, d_, {from.data, from.row}, factors, step, add, to, stride);
  }

  Rows<bf16> rounded(int64_t rows, int64_t columns, Rows<const float> from, Panel<bf16>& panel) const {
    const Rows<bf16> to = panel.fit(rows, columns);
    kernels_.store(rows, columns, {from.data, from.row}, &one, 0, false, to.data, to.row);
    return to;
  }

  int64_t width() const { return whole_bf16_vectors(d_); }  // columns of d sums

 private:
  const Bf16Kernels& kernels_;
  int64_t d_;
};

// Queries of a block; an even number where there are several blocks, since rows become pairs of a depth.
int64_t even_block(int64_t queries, int64_t columns) {
  const int64_t block = block_of_queries<float>(queries, columns);
  return block < queries ? 2 * pairs_of(block) : block;
}

}  // namespace

void forward_head_bf16(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h,
                       const TokenHeads<const bf16>& q_heads, const TokenHeads<const bf16>& k_heads,
                       const TokenHeads<const bf16>& v_heads, const TokenHeads<bf16>& y_heads, float* lse) {
  Memory& work = Memory::of_this_thread();
  const auto& [images, heads, queries, keys, d] = h.sizes;
  const HeadProducts products(kernels, d);
  const int64_t columns = whole_bf16_vectors(keys), most = even_block(queries, columns);
  const float scale = h.terms.scale_term(h.head).factor;
  prefetch_next_head(h, q_heads, queries);
  prefetch_next_head(h, k_heads, keys);
  prefetch_next_head(h, v_heads, keys);
  const RightPairs kt =
      products.right_of_transposed({tokens_of(h, k_heads, keys), k_heads.stride, keys}, work.k_transposed);
  const RightPairs v = products.right({tokens_of(h, v_heads, keys), v_heads.stride, keys}, work.v);
  const Rows<const float> start = start_of_scores(keys, columns, work.start);
  const float* gate = load_gates(h, work.gate);
  const Rows<float> s = work.scores.fit(most, columns), y = work.y.fit(most, products.width());
  float *maxima = work.maxima.fit(1, most).data, *sums = work.sums.fit(1, most).data;
  for (int64_t i = 0; i < queries; i += most) {
    const QueryBlock block{i, std::min(most, queries - i), keys};
    const LeftPairs q =
        products.left({tokens_of(h, q_heads, queries, i), q_heads.stride, block.count}, work.q);
    products.scores(block.count, columns, q, kt, scale, {start.data, 0}, s);
    forward_terms(h, block, gate, s, {nullptr, 0});
    row_maxima(block.count, s, maxima);
    exponentials(block.count, s, maxima, sums);
    const Rows<bf16> p = products.rounded(block.count, columns, s, work.p);
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

float backward_head_bf16(const Bf16Kernels& kernels, const HeadOfImage<bf16>& h,
                         const BackwardHead<bf16>& io) {
  Memory& work = Memory::of_this_thread();
  const auto& [images, heads, queries, keys, d] = h.sizes;
  const HeadProducts products(kernels, d);
  const int64_t columns = whole_bf16_vectors(keys), width = products.width(),
                most = even_block(queries, columns);
  const float scale = h.terms.scale_term(h.head).factor;
  prefetch_next_head(h, io.q, queries);
  prefetch_next_head(h, io.k, keys);
  prefetch_next_head(h, io.v, keys);
  prefetch_next_head(h, io.dy, queries);
  const Tokens all_k{tokens_of(h, io.k, keys), io.k.stride, keys},
      all_v{tokens_of(h, io.v, keys), io.v.stride, keys};
  const RightPairs kt = products.right_of_transposed(all_k, work.k_transposed),
                   vt = products.right_of_transposed(all_v, work.v_transposed),
                   k = products.right(all_k, work.k);
  const Rows<const float> start = start_of_scores(keys, columns, work.start);
  const float* gate = load_gates(h, work.gate);
  TermSums<float> sums = io.sums;
  if (io.dgates.data) {
    sums.gate = work.dgate.fit(1, keys).data;
    sums.own = work.own.fit(1, keys);
    std::fill_n(sums.gate, keys, 0.0f);
  }
  const Rows<float> s = work.scores.fit(most, columns), ds = work.dscores.fit(most, columns),
                    dq = work.dq.fit(most, width), wide_q = work.wide_q.fit(most, width);
  const Rows<float> before = sums.prior ? work.before_prior.fit(most, columns) : Rows<float>{nullptr, 0};
  const Rows<float> dk = work.dk.fit(keys, width), dv = work.dv.fit(keys, width);
  float *means = work.sums.fit(1, most).data, *shares = work.maxima.fit(1, most).data;
  if (queries == 0) fill_rows(dk, 0, keys, 0.0f), fill_rows(dv, 0, keys, 0.0f);
  float dscale = 0;
  for (int64_t i = 0; i < queries; i += most) {
    const QueryBlock block{i, std::min(most, queries - i), keys};
    const Tokens q{tokens_of(h, io.q, queries, i), io.q.stride, block.count},
        dy{tokens_of(h, io.dy, queries, i), io.dy.stride, block.count};
    // s = terms(scale q k^T), dP = dy v^T
    products.scores(block.count, columns, products.left(q, work.q), kt, scale, {start.data, 0}, s);
    products.scores(block.count, columns, products.left(dy, work.q), vt, 1, zeros, ds);
    forward_terms(h, block, gate, s, before);
    softmax_backward(block.count, s, ds, io.lse + i, means, shares);
    backward_terms(h, block, gate, before, ds, sums);
    // dv += P^T dy, dk += ds^T q, dq = ds k, dscale += ds . q k^T = (ds k) . q; the scale follows
    const Rows<bf16> p_rounded = products.rounded(block.count, columns, s, work.p),
                     ds_rounded = products.rounded(block.count, columns, ds, work.ds);
    const FloatRows dv_before = i == 0 ? zeros : FloatRows(floats(dv)),
                    dk_before = i == 0 ? zeros : FloatRows(floats(dk));
    products.tokens(keys, block.count, products.left_of_transposed(block.count, keys, p_rounded, work.left),
                    products.right(dy, work.dy), dv_before, dv);
    products.tokens(keys, block.count, products.left_of_transposed(block.count, keys, ds_rounded, work.left),
                    products.right(q, work.dy), dk_before, dk);
    products.tokens(block.count, keys, {ds_rounded.data, ds_rounded.row, 2}, k, zeros, dq);
    if (h.terms.learned_scale) {
      load_rows(q.data, q.stride, q.count, d, wide_q);
      dscale += dot_product(dq.data, wide_q.data, block.count * width);
    }
    products.store(block.count, dq, &scale, 0, io.dq.add, tokens_of(h, io.dq, queries, i), io.dq.stride);
  }
  products.store(keys, dk, &scale, 0, io.dk.add, tokens_of(h, io.dk, keys), io.dk.stride);
  products.store(keys, dv, &one, 0, io.dv.add, tokens_of(h, io.dv, keys), io.dv.stride);
  if (sums.gate) store_gates(h, sums.gate, io.dgates);
  return dscale;
}

}  // namespace tessera
