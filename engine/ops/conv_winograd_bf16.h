#pragma once

// Minimal filtering (conv_winograd.h) in bf16: the additions and the sums of products are in float, the
// pixels and the weight are rounded at the points, and the outputs once.

#include "engine/core/made_of_weight.h"
#include "engine/cpu/bf16_gemm.h"
#include "engine/ops/conv_winograd.h"

namespace tessera {

// This says whether a convolution in bf16 is computed so: if one in float is, its channels are whole panels,
// and the kernels have its additions.
inline bool by_winograd(const Bf16Kernels& kernels, const ConvSize& s) {
  return kernels.pixels_to_points && by_winograd(s) && s.in % bf16_panel == 0 && s.out % bf16_panel == 0;
}

// A convolution whose weight lies at the points.
class ConvAtPoints {
 public:
  // The weight is that of `size`; with `turned` the convolution is the one of dy that makes dx.
  ConvAtPoints(const Bf16Kernels& kernels, const ConvSize& size, const bf16* weight, bool turned);

  // y = start + the convolution of an image or, with `add`, y + it, rounded once; `start` [out] may be null
  // for zeros. done(first, last) is called for the rows [first, last) of outputs when they are written.
  void image(const bf16* image, const float* start, bool add, bf16* y, const Finish& done) const;

 private:
  const Bf16Kernels& kernels_;
  ConvSize size_;              // of the convolution that is computed
  MadeOfWeight<bf16> panels_;  // [out / 32, points, in / 2, 32, 2]
};

}  // namespace tessera
