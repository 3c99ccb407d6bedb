#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/cpu/each.h"
#include "engine/ops/attention/mask_kernels.h"
#include "engine/ops/attention/score_terms.h"

namespace tessera {

template <>
template <class T>
void MaskKernels<Cpu>::diagonal(int64_t matrices, int64_t tokens, const T* x, double value, Target<T> y) {
  const DiagonalTerm<Wide<T>> mask{Wide<T>(value)};
  parallel_for(matrices * tokens, chunk_length(64, tokens), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = x + row * tokens;
      const int64_t i = row % tokens;
      write_each(0, tokens, y.data + row * tokens, y.add, [=](int64_t j) {
        return mask.forward(Wide<T>(from[j]), {i, j, tokens});
      });
    }
  });
}

TESSERA_FOR_FLOATS(MaskKernels<Cpu>::diagonal)

}  // namespace tessera
