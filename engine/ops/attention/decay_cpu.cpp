#include <cstdlib>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/each.h"
#include "engine/ops/attention/decay_kernels.h"
#include "engine/ops/attention/score_terms.h"

namespace tessera {

namespace {

// This head's gates as a contiguous array in this thread's memory. gates [N, H]
template <class T> const Wide<T>* gates_of_head(const T* gates, int64_t tokens, int64_t heads, int64_t head) {
  Wide<T>* gate = thread_scratch<Wide<T>, 0>(tokens);
  for (int64_t i = 0; i < tokens; ++i) gate[i] = Wide<T>(gates[i * heads + head]);
  return gate;
}

}  // namespace

template <>
template <class T>
void DecayKernels<Cpu>::distances(int64_t height, int64_t width, int64_t prefix, bool use_distance,
                                  T* distance) {
  const int64_t tokens = prefix + height * width;
  for (int64_t i = 0; i < tokens; ++i) {
    T* row = distance + i * tokens;
    for (int64_t j = 0; j < (i < prefix ? tokens : prefix); ++j) row[j] = T(0);
    if (i < prefix) continue;
    const int64_t y = (i - prefix) / width, x = (i - prefix) % width;
    T* to = row + prefix;
    for (int64_t row_j = 0; row_j < height; ++row_j)
      for (int64_t column_j = 0; column_j < width; ++column_j) {
        const int64_t steps = std::abs(y - row_j) + std::abs(x - column_j);
        *to++ = T(use_distance ? Wide<T>(steps) : Wide<T>(1));
      }
  }
}

template <>
template <class T>
void DecayKernels<Cpu>::fixed(int64_t heads, int64_t tokens, const T* slopes, const Wide<T>* distance, T* y) {
  for (int64_t head = 0; head < heads; ++head) {
    const FixedDecayTerm<Wide<T>> decay{Wide<T>(slopes[head]), distance};
    parallel_write(tokens * tokens, y + head * tokens * tokens, false, [=](int64_t element) {
      return decay.forward(0, {0, element, tokens});
    });
  }
}

template <>
template <class T>
void DecayKernels<Cpu>::content_forward(DecaySize size, double alpha, const Wide<T>* distance, const T* gates,
                                        T* y) {
  using W = Wide<T>;
  const int64_t images = size.images, heads = size.heads, tokens = size.tokens;
  parallel_for(images * heads, 1, [=](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      const W* gate = gates_of_head(gates + m / heads * tokens * heads, tokens, heads, m % heads);
      const ContentDecayTerm<W> decay{W(alpha), distance, gate};
      for (int64_t i = 0; i < tokens; ++i)
        write_each(0, tokens, y + (m * tokens + i) * tokens, false, [=](int64_t j) {
          return decay.forward(0, {i, j, tokens});
        });
    }
  });
}

template <>
template <class T>
void DecayKernels<Cpu>::content_backward(DecaySize size, double alpha, const Wide<T>* distance,
                                         const T* gates, const T* dy, Target<T> dgates) {
  using W = Wide<T>;
  const int64_t images = size.images, heads = size.heads, tokens = size.tokens;
  parallel_for(images * heads, 1, [=](int64_t begin, int64_t end) {
    std::vector<W> sums(static_cast<size_t>(tokens));
    for (int64_t m = begin; m < end; ++m) {
      const int64_t image = m / heads, head = m % heads;
      const W* gate = gates_of_head(gates + image * tokens * heads, tokens, heads, head);
      const ContentDecayTerm<W> decay{W(alpha), distance, gate};
      std::fill(sums.begin(), sums.end(), W(0));
      W* dgate = sums.data();
      for (int64_t i = 0; i < tokens; ++i) {
        const T* dy_row = dy + (m * tokens + i) * tokens;
        W of_query = 0;
#pragma omp simd reduction(+ : of_query)
        for (int64_t j = 0; j < tokens; ++j) {
          const W own = decay.backward(W(dy_row[j]), 0, {i, j, tokens}).own;
          dgate[j] += own;
          of_query += own;
        }
        dgate[i] += of_query;
      }
      for (int64_t i = 0; i < tokens; ++i) {
        T& target = dgates.data[(image * tokens + i) * heads + head];
        target = T(dgates.add ? W(target) + dgate[i] : dgate[i]);
      }
    }
  });
}

TESSERA_FOR_FLOATS(DecayKernels<Cpu>::distances)
TESSERA_FOR_FLOATS(DecayKernels<Cpu>::fixed)
TESSERA_FOR_FLOATS(DecayKernels<Cpu>::content_forward)
TESSERA_FOR_FLOATS(DecayKernels<Cpu>::content_backward)

}  // namespace tessera
