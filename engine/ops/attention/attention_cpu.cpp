#include "engine/core/dispatch.h"
#include "engine/core/per_thread.h"
#include "engine/core/storage.h"
#include "engine/cpu/each.h"
#include "engine/cpu/fast_math.h"
#include "engine/cpu/small_gemm.h"
#include "engine/ops/attention/attention_bf16.h"
#include "engine/ops/attention/heads.h"

namespace tessera {

namespace {

// The working memory of one thread.
template <class W> struct Workspace {
  Panel<W> k, v, k_transposed, v_transposed, dk, dv;  // all keys of a head
  Panel<W> q, y, dq, dy;                              // a block of its queries
  Panel<W> scores, ds, before_prior;                  // [block, keys]
  Panel<W> start, zeros, gate, dgate, own;            // [1, keys]
  Panel<W> maxima, sums;                              // [1, block]

  static Workspace& of_this_thread() {
    static const PerThread<Workspace> workspaces;
    return workspaces.of_this_thread();
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

// y = softmax(s) v of one head; the log-sum-exp of each row if lse is not null.
template <class T>
void forward_head(const HeadOfImage<T>& h, const TokenHeads<const T>& q_heads,
                  const TokenHeads<const T>& k_heads, const TokenHeads<const T>& v_heads,
                  const TokenHeads<T>& y_heads, Wide<T>* lse) {
  using W = Wide<T>;
  auto& work = Workspace<W>::of_this_thread();
  const auto& [images, heads, queries, keys, d] = h.sizes;
  const Rows<W> k = load_all(h, k_heads, work.k), v = load_all(h, v_heads, work.v);
  // scale (q . k) = q . (scale k): scaling the keys is cheaper than scaling every score
  const Rows<W> kt = transposed(h.terms.scale_term(h.head).factor, k, keys, work.k_transposed);
  const int64_t columns = whole_vectors<W>(keys);
  const Rows<const W> start = start_of_scores(keys, columns, work.start), zeros = zero_row(d, work.zeros);
  const W* gate = load_gates(h, work.gate);
  const int64_t most = block_of_queries<W>(queries, columns);
  const Rows<W> q = work.q.fit(most, d), s = work.scores.fit_apart(most, keys), y = work.y.fit(most, d);
  W *maxima = work.maxima.fit(1, most).data, *sums = work.sums.fit(1, most).data;
  for (int64_t i = 0; i < queries; i += most) {
    const QueryBlock block{i, std::min(most, queries - i), keys};
    load_rows(tokens_of(h, q_heads, queries, i), q_heads.stride, block.count, d, q);
    small_gemm<W>(block.count, columns, d, {q.data, q.row, 1}, kt, start, s);
    forward_terms(h, block, gate, s, {nullptr, 0});
    row_maxima(block.count, columns, s, maxima);
    exponentials(block.count, columns, s, maxima, sums);
    small_gemm<W>(block.count, y.row, keys, {s.data, s.row, 1}, v, zeros, y);
    store_rows<T>(
        y, block.count, d, [=](int64_t r) { return 1 / sums[r]; }, tokens_of(h, y_heads, queries, i),
        y_heads.stride, false);
    if (!lse) continue;
#pragma omp simd
    for (int64_t r = 0; r < block.count; ++r) lse[i + r] = maxima[r] + fast_log(sums[r]);
  }
}

// The gradients of one head; returns d loss / d scale.
template <class T> Wide<T> backward_head(const HeadOfImage<T>& h, const BackwardHead<T>& io) {
  using W = Wide<T>;
  auto& work = Workspace<W>::of_this_thread();
  const auto& [images, heads, queries, keys, d] = h.sizes;
  const W scale = h.terms.scale_term(h.head).factor;
  const auto scaled = [=](int64_t) { return scale; };
  const Rows<W> k = load_all(h, io.k, work.k), v = load_all(h, io.v, work.v);
  const Rows<W> kt = transposed(scale, k, keys, work.k_transposed),
                vt = transposed(W(1), v, keys, work.v_transposed);
  const int64_t columns = whole_vectors<W>(keys);
  const Rows<const W> start = start_of_scores(keys, columns, work.start),
                      zeros = zero_row(std::max(keys, d), work.zeros);
  const W* gate = load_gates(h, work.gate);
  TermSums<W> sums = io.sums;
  if (io.dgates.data) {
    sums.gate = work.dgate.fit(1, keys).data;
    sums.own = work.own.fit(1, keys);
    std::fill_n(sums.gate, keys, W(0));
  }
  const int64_t most = block_of_queries<W>(queries, columns);
  const Rows<W> q = work.q.fit(most, d), dy = work.dy.fit(most, d), dq = work.dq.fit(most, d);
  const Rows<W> s = work.scores.fit_apart(most, keys), ds = work.ds.fit_apart(most, keys);
  const Rows<W> before = sums.prior ? work.before_prior.fit_apart(most, keys) : Rows<W>{nullptr, 0};
  const Rows<W> dk = work.dk.fit(keys, d), dv = work.dv.fit(keys, d);
  W *means = work.sums.fit(1, most).data, *shares = work.maxima.fit(1, most).data;
  fill_rows(dk, 0, keys, W(0));
  fill_rows(dv, 0, keys, W(0));
  W dscale = 0;
  for (int64_t i = 0; i < queries; i += most) {
    const QueryBlock block{i, std::min(most, queries - i), keys};
    load_rows(tokens_of(h, io.q, queries, i), io.q.stride, block.count, d, q);
    load_rows(tokens_of(h, io.dy, queries, i), io.dy.stride, block.count, d, dy);
    // s = terms(scale q k^T), dP = dy v^T
    small_gemm<W>(block.count, columns, d, {q.data, q.row, 1}, kt, start, s);
    small_gemm<W>(block.count, columns, d, {dy.data, dy.row, 1}, vt, zeros, ds);
    forward_terms(h, block, gate, s, before);
    softmax_backward(block.count, columns, s, ds, io.lse + i, means, shares);
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

// forward_head() by the kernels that this processor has for T.
template <class T>
void values_of_head(const HeadOfImage<T>& h, const TokenHeads<const T>& q, const TokenHeads<const T>& k,
                    const TokenHeads<const T>& v, const TokenHeads<T>& y, Wide<T>* lse) {
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Kernels* kernels = bf16_kernels()) return forward_head_bf16(*kernels, h, q, k, v, y, lse);
  forward_head(h, q, k, v, y, lse);
}

// backward_head() by the kernels that this processor has for T.
template <class T> Wide<T> gradients_of_head(const HeadOfImage<T>& h, const BackwardHead<T>& io) {
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Kernels* kernels = bf16_kernels()) return backward_head_bf16(*kernels, h, io);
  return backward_head(h, io);
}

// One sum for each chunk of images, so that the result does not depend on the threads. [chunks, elements]
template <class W> class PartialSums {
 public:
  PartialSums(bool wanted, int64_t chunks, int64_t elements)
      : wanted_(wanted),
        chunks_(chunks),
        elements_(elements),
        memory_(Device::cpu, wanted ? static_cast<size_t>(chunks * elements) * sizeof(W) : 0) {}

  // The sum of chunk c; null if it is not wanted.
  W* chunk(int64_t c) const { return wanted_ ? static_cast<W*>(memory_.data()) + c * elements_ : nullptr; }

  // target [count] = the sum over the chunks and over the elements that lie `count` apart. The sum is made in
  // chunk 0.
  template <class T> void total(const Target<T>& target, int64_t count) const {
    if (!wanted_ || count == 0) return;
    W* sum = chunk(0);
    const int64_t parts = chunks_ * elements_ / count;
    parallel_for(count, chunk_length(chunk_elements), [=](int64_t begin, int64_t end) {
      add_parts(begin, end, parts, count, sum);
      write_each(begin, end, target.data, target.add, [=](int64_t i) { return sum[i]; });
    });
  }

 private:
  bool wanted_;
  int64_t chunks_, elements_;
  Storage memory_;
};

// How many chunks the images are cut into, nearly equal ones: one image each or, where gradients of prior and
// bias are wanted, whose sums are matrices, few enough for their memory.
int64_t chunks_of_images(const AttentionSizes& s, bool matrices) {
  if (!matrices) return std::max<int64_t>(1, s.images);
  constexpr int64_t most_chunks = 8, most_elements = 1 << 24;
  const int64_t fitting = most_elements / std::max<int64_t>(1, s.heads * s.keys * s.keys);
  return std::clamp<int64_t>(std::min(fitting, s.images), 1, most_chunks);
}

}  // namespace

template <>
template <class T>
void AttentionKernels<Cpu>::forward(const AttentionSizes& sizes, TokenHeads<const T> q, TokenHeads<const T> k,
                                    TokenHeads<const T> v, const BatchTerms<T>& terms, T* y, Wide<T>* lse) {
  const TokenHeads<T> out{y, sizes.heads * sizes.head_dim};
  parallel_for(sizes.images * sizes.heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      const HeadOfImage<T> head{sizes, terms, m / sizes.heads, m % sizes.heads};
      values_of_head(head, q, k, v, out, lse ? lse + m * sizes.queries : nullptr);
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
  const bool matrices = to.dprior.data || to.dbias.data;
  const int64_t chunks = chunks_of_images(sizes, matrices);
  const PartialSums<W> scale(to.dscale.data, chunks, heads), prior(to.dprior.data, chunks, heads * matrix),
      bias(to.dbias.data, chunks, heads * matrix);
  if (DryRun::active()) return;
  // Heads [first, last) of the images of chunk c, image by image.
  const auto heads_of_chunk = [&](int64_t c, int64_t first, int64_t last) {
    for (const PartialSums<W>* sums : {&prior, &bias})
      if (W* sum = sums->chunk(c)) std::fill(sum + first * matrix, sum + last * matrix, W(0));
    W* const dscale = scale.chunk(c);
    if (dscale) std::fill(dscale + first, dscale + last, W(0));
    BackwardHead<T> io{q, k, v, {dy, heads * sizes.head_dim}, to.dq, to.dk, to.dv, nullptr, {}, to.dgates};
    for (int64_t image = c * sizes.images / chunks; image < (c + 1) * sizes.images / chunks; ++image)
      for (int64_t head = first; head < last; ++head) {
        const auto of_head = [&](const PartialSums<W>& sums) {
          return sums.chunk(c) ? sums.chunk(c) + head * matrix : nullptr;
        };
        io.sums.prior = of_head(prior);
        io.sums.bias = of_head(bias);
        io.lse = lse + (image * heads + head) * sizes.queries;
        const bool image_follows = matrices && last - first == 1;
        const W share = gradients_of_head(HeadOfImage<T>{sizes, terms, image, head, image_follows}, io);
        if (dscale) dscale[head] += share;
      }
  };
  // The heads of an image, which lie side by side, follow one another: in a chunk of several images too, if
  // the chunks keep all threads busy.
  const int64_t together = matrices && chunks >= int64_t{4} * threads() ? heads : 1;
  parallel_for(chunks * heads, together, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task += together)
      heads_of_chunk(task / heads, task % heads, task % heads + together);
  });
  scale.total(to.dscale, heads);
  prior.total(to.dprior, terms.prior_heads * matrix);
  bias.total(to.dbias, heads * matrix);
}

TESSERA_FOR_FLOATS(AttentionKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(AttentionKernels<Cpu>::backward)

}  // namespace tessera
