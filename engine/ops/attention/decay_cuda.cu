#include "engine/core/dispatch.h"
#include "engine/cuda/index.h"
#include "engine/cuda/rows.h"
#include "engine/ops/attention/decay_kernels.h"
#include "engine/ops/attention/score_terms.h"

namespace tessera {

template <>
template <class T>
void DecayKernels<Cuda>::distances(int64_t height, int64_t width, int64_t prefix, bool use_distance,
                                   T* distance) {
  using W = Wide<T>;
  const int64_t tokens = prefix + height * width;
  map(tokens * tokens, distance, false, [=] __device__(int64_t i) {
    int64_t column_j = split_off(i, tokens) - prefix, column_i = i - prefix;
    if (column_i < 0 || column_j < 0) return W(0);
    if (!use_distance) return W(1);
    int64_t row_i = column_i, row_j = column_j;
    column_i = split_off(row_i, width);
    column_j = split_off(row_j, width);
    const int64_t down = row_i - row_j, right = column_i - column_j;
    return W((down < 0 ? -down : down) + (right < 0 ? -right : right));
  });
}

template <>
template <class T>
void DecayKernels<Cuda>::fixed(int64_t heads, int64_t tokens, const T* slopes, const Wide<T>* distance,
                               T* y) {
  using W = Wide<T>;
  const int64_t matrix = tokens * tokens;
  map(heads * matrix, y, false, [=] __device__(int64_t head) {
    const int64_t element = split_off(head, matrix);
    return FixedDecayTerm<W>{W(slopes[head]), distance}.forward(0, {0, element, tokens});
  });
}

namespace {

// y [B, H, N] = gates [B, N, H], widened, so that the gates of a head are contiguous.
template <class T>
void gates_by_head(int64_t images, int64_t heads, int64_t tokens, const T* gates, Wide<T>* y) {
  using W = Wide<T>;
  map(images * heads * tokens, y, false, [=] __device__(int64_t image) {
    const int64_t i = split_off(image, tokens), head = split_off(image, heads);
    return W(gates[(image * tokens + i) * heads + head]);
  });
}

}  // namespace

template <>
template <class T>
void DecayKernels<Cuda>::content_forward(DecaySize size, double alpha, const Wide<T>* distance,
                                         const T* gates, T* y) {
  using W = Wide<T>;
  const int64_t images = size.images, heads = size.heads, tokens = size.tokens;
  const Scratch<W> by_head(images * heads * tokens);
  const W* const gate = by_head.data();
  gates_by_head(images, heads, tokens, gates, by_head.data());
  map(images * heads * tokens * tokens, y, false, [=] __device__(int64_t m) {
    const int64_t j = split_off(m, tokens), i = split_off(m, tokens);
    return ContentDecayTerm<W>{W(alpha), distance, gate + m * tokens}.forward(0, {i, j, tokens});
  });
}

template <>
template <class T>
void DecayKernels<Cuda>::content_backward(DecaySize size, double alpha, const Wide<T>* distance,
                                          const T* gates, const T* dy, Target<T> dgates) {
  using W = Wide<T>;
  const int64_t images = size.images, heads = size.heads, tokens = size.tokens;
  const Scratch<W> by_head(images * heads * tokens);
  const W* const gate = by_head.data();
  gates_by_head(images, heads, tokens, gates, by_head.data());
  // gate k gets the shares of row k and of column k
  each_row(images * heads * tokens, [=] __device__(int64_t m, int lane) {
    const int64_t k = split_off(m, tokens);
    const ContentDecayTerm<W> decay{W(alpha), distance, gate + m * tokens};
    const T* matrix = dy + m * tokens * tokens;
    const auto share = [=](int64_t i, int64_t j) {
      return decay.backward(W(matrix[i * tokens + j]), 0, {i, j, tokens}).own;
    };
    const W sum = lanes_sum<W>(tokens, lane, [=](int64_t j) { return share(k, j) + share(j, k); });
    const int64_t head = split_off(m, heads);
    if (lane == 0) write(dgates.data[(m * tokens + k) * heads + head], dgates.add, sum);
  });
}

TESSERA_FOR_FLOATS(DecayKernels<Cuda>::distances)
TESSERA_FOR_FLOATS(DecayKernels<Cuda>::fixed)
TESSERA_FOR_FLOATS(DecayKernels<Cuda>::content_forward)
TESSERA_FOR_FLOATS(DecayKernels<Cuda>::content_backward)

}  // namespace tessera
