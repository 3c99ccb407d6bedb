#include "engine/ops/resample.h"

#include "engine/check/op_case.h"
#include "engine/ops/matmul.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

using In = std::span<const Tensor>;

// The taps of an axis as a matrix [output, input].
Tensor matrix(const Taps& taps, const Tensor& like) {
  Tensor dense = Tensor::zeros({static_cast<int64_t>(taps.of.size()), taps.input_size}, DType::f64);
  for (size_t i = 0; i < taps.of.size(); ++i)
    for (const Taps::Tap& tap : taps.of[i])
      dense.data<double>()[static_cast<int64_t>(i) * taps.input_size + tap.from] += tap.weight;
  return beside(dense, like);
}

// A x B^T of every channel, A and B the taps of rows and columns.
Tensor plain(const Tensor& x, const Taps& vertical, const Taps& horizontal) {
  const Tensor channels_first = permute(x, {0, 3, 1, 2});
  const Tensor y = matmul(matmul(matrix(vertical, x), channels_first), matrix(horizontal, x), false, true);
  return permute(y, {0, 2, 3, 1});
}

OpCase resampled(const char* variant, Taps (*taps)(int64_t, int64_t), int64_t height, int64_t width) {
  return {"resample",
          variant,
          {random_tensor({2, 4, 5, 3}, 1)},
          [=](In in) { return resample(in[0], taps(4, height), taps(5, width)); },
          [=](In in) { return plain(in[0], taps(4, height), taps(5, width)); }};
}

}  // namespace

OpCases resample_cases() {
  return {resampled("bilinear, larger", bilinear_taps, 7, 9),
          resampled("bilinear, smaller", bilinear_taps, 3, 2), resampled("bicubic", bicubic_taps, 6, 3),
          resampled("average", average_taps, 3, 2)};
}

}  // namespace tessera
