#include "engine/check/op_case.h"
#include "engine/ops/resample.h"
#include "engine/ops/rotary.h"
#include "engine/ops/take.h"

namespace tessera {

namespace {

OpCase resampled(const char* variant, Taps (*taps)(int64_t, int64_t), int64_t height, int64_t width) {
  return {"resample", variant, {random_tensor({2, 4, 5, 3}, 1)}, [=](std::span<const Tensor> in) {
            return resample(in[0], taps(4, height), taps(5, width));
          }};
}

OpCase taken(const char* variant, int axis, std::vector<int64_t> index) {
  return {"take", variant, {random_tensor({3, 4, 5}, 1)}, [=](std::span<const Tensor> in) {
            return take(in[0], axis, Tensor::from(index, {static_cast<int64_t>(index.size())}));
          }};
}

}  // namespace

OpCases take_cases() {
  return {taken("an order of the tokens", 1, {2, 0, 3, 1}), taken("some often, some never", -1, {4, 4, 0}),
          taken("of the images", 0, {2, 1, 0})};
}

OpCases resample_cases() {
  return {resampled("bilinear, larger", bilinear_taps, 7, 9),
          resampled("bilinear, smaller", bilinear_taps, 3, 2), resampled("bicubic", bicubic_taps, 6, 3),
          resampled("average", average_taps, 3, 2)};
}

OpCases rotary_cases() {
  return {{"rotary",
           "two heads",
           {random_tensor({2, 5, 12}, 1)},
           [](std::span<const Tensor> in) { return rotary(in[0], raster_angles(5, 6)); }},
          {"rotary", "one pair", {random_tensor({70, 3, 2}, 1)}, [](std::span<const Tensor> in) {
             return rotary(in[0], raster_angles(3, 2));
           }}};
}

}  // namespace tessera
