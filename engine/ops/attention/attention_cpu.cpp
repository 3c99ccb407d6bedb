#include "engine/core/dispatch.h"
#include "engine/core/storage.h"
#include "engine/cpu/each.h"
#include "engine/ops/attention/attention_bf16.h"
#include "engine/ops/attention/attention_float.h"

namespace tessera {

namespace {

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
