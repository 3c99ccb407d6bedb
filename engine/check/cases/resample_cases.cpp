#include "engine/check/op_case.h"
#include "engine/ops/resample.h"

namespace tessera {

namespace {

OpCase resampled(const char* variant, Taps (*taps)(int64_t, int64_t), int64_t height, int64_t width) {
  return {"resample", variant, {random_tensor({2, 4, 5, 3}, 1)}, [=](std::span<const Tensor> in) {
            return resample(in[0], taps(4, height), taps(5, width));
          }};
}

}  // namespace

OpCases resample_cases() {
  return {resampled("bilinear, larger", bilinear_taps, 7, 9),
          resampled("bilinear, smaller", bilinear_taps, 3, 2), resampled("bicubic", bicubic_taps, 6, 3),
          resampled("average", average_taps, 3, 2)};
}

}  // namespace tessera
