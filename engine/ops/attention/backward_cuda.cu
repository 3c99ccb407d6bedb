// Attention's backward pass: two kernels that both compute the scores again, one by rows of queries, one by
// rows of keys, so that each sum has one owner and no result depends on the order in which blocks finish.
// Where one block holds all scores of a head, the first kernel does everything, or a kernel for such heads
// does (whole_cuda.h).

#include "engine/core/dispatch.h"
#include "engine/ops/attention/backward_cuda.h"
#include "engine/ops/attention/whole_cuda.h"

namespace tessera {

namespace {

template <class W> struct Zero {
  TESSERA_HD W operator()(int64_t) const { return 0; }
};

// Without queries the gradients that images share are 0.
template <class T>
void zero_shared(const AttentionSizes& s, int64_t prior_heads, const AttentionGradients<T>& to) {
  using W = Wide<T>;
  const auto zero = [](int64_t n, const Target<T>& target) {
    if (target.data && !target.add) map(n, target.data, false, Zero<W>{});
  };
  const int64_t matrix = s.keys * s.keys;
  zero(s.heads, to.dscale);
  zero(prior_heads * matrix, to.dprior);
  zero(s.heads * matrix, to.dbias);
}

}  // namespace

template <>
template <class T>
void AttentionKernels<Cuda>::backward(const AttentionSizes& sizes, TokenHeads<const T> q,
                                      TokenHeads<const T> k, TokenHeads<const T> v,
                                      const BatchTerms<T>& terms, const Wide<T>* lse, const T* dy,
                                      const AttentionGradients<T>& to) {
  using W = Wide<T>;
  const AttentionOperands<T> operands(sizes, q, k, v, dy, terms);
  if constexpr (std::is_same_v<T, bf16>)
    if (backward_whole(operands, lse, to)) return;
  const int64_t rows_in_all = sizes.images * sizes.heads * sizes.queries;
  const Scratch<W> row_sums(3 * std::max<int64_t>(1, rows_in_all));
  const RowSums<W> sums{row_sums.data(), row_sums.data() + rows_in_all,
                        to.dgates.data ? row_sums.data() + 2 * rows_in_all : nullptr};
  bool keys_are_done = false;
  if (rows_in_all > 0)
    keys_are_done = backward_by_queries(sizes, operands, lse, sums, to);
  else
    zero_shared(sizes, terms.prior_heads, to);
  const KeyTargets<T> keys{to.dk, to.dv, to.dgates};
  const bool wanted = keys.dk.data || keys.dv.data || keys.dgates.data;
  if (wanted && !keys_are_done && sizes.images * sizes.keys > 0)
    backward_by_keys(sizes, operands, lse, sums, keys);
}

TESSERA_FOR_FLOATS(AttentionKernels<Cuda>::backward)

}  // namespace tessera
