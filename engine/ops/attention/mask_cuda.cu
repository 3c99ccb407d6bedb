#include "engine/core/dispatch.h"
#include "engine/cuda/launch.h"
#include "engine/ops/attention/mask_kernels.h"
#include "engine/ops/attention/score_terms.h"

namespace tessera {

template <>
template <class T>
void MaskKernels<Cuda>::diagonal(int64_t matrices, int64_t tokens, const T* x, double value, Target<T> y) {
  using W = Wide<T>;
  const DiagonalTerm<W> mask{W(value)};
  map(
      matrices * tokens * tokens, y.data, y.add,
      [=] __device__(int64_t k, W score) {
        const int64_t row = k / tokens;
        return mask.forward(score, {row % tokens, k - row * tokens, tokens});
      },
      x);
}

TESSERA_FOR_FLOATS(MaskKernels<Cuda>::diagonal)

}  // namespace tessera
