#include "engine/ops/conv_normed.h"

#include "engine/core/dispatch.h"
#include "engine/ops/activations_bf16.h"
#include "engine/ops/activations_kernels.h"
#include "engine/ops/batch_norm_rows.h"

namespace tessera {

namespace {

// y = f(scale y + shift + residual) for n numbers of whole pixels; the residual may be null. Scale and shift
// have `columns` numbers, for some pixels side by side.
template <class F, class T>
void finish_part(int64_t n, int64_t columns, const Wide<T>* scale, const Wide<T>* shift, const T* residual,
                 T* y) {
  for (int64_t at = 0; at < n; at += columns)
    norm_columns<F, T>(std::min(columns, n - at), scale, shift, y + at, residual ? residual + at : nullptr,
                       y + at);
}

}  // namespace

template <>
template <class T>
void NormedConvKernels<Cpu>::forward(const ConvSize& s, bool depthwise, const T* x, const T* weight,
                                     const T* bias, const NormedOutput<T>& normed, T* y) {
  const auto convolve = depthwise ? depthwise_forward<T> : conv_forward<T>;
  if (DryRun::active()) return convolve(s, x, weight, bias, y, nullptr);
  const RowsSize rows{s.images * s.positions(), s.out};
  const Affine<Wide<T>> affine(rows, normed.weight, normed.bias, normed.by);
  const int64_t columns = FoldedRows(rows).width;
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Norm norm(normed.f); norm)
      return convolve(s, x, weight, bias, y, [&](int64_t begin, int64_t end) {
        norm(end - begin, columns, affine.scale.data(), affine.shift.data(), y + begin,
             normed.residual ? normed.residual + begin : nullptr, y + begin);
      });
  with_activation(normed.f, [&]<class F>(F) {
    convolve(s, x, weight, bias, y, [&](int64_t begin, int64_t end) {
      finish_part<F, T>(end - begin, columns, affine.scale.data(), affine.shift.data(),
                        normed.residual ? normed.residual + begin : nullptr, y + begin);
    });
  });
}

TESSERA_FOR_FLOATS(NormedConvKernels<Cpu>::forward)

}  // namespace tessera
