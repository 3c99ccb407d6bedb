#include "engine/check/op_case.h"
#include "engine/ops/take.h"

namespace tessera {

namespace {

OpCase taken(const char* variant, int axis, const std::vector<int64_t>& index) {
  return {"take", variant, {random_tensor({3, 4, 5}, 1)}, [=](std::span<const Tensor> in) {
            return take(in[0], axis, Tensor::from(index, {static_cast<int64_t>(index.size())}));
          }};
}

}  // namespace

OpCases take_cases() {
  OpCase of_images = taken("of the images", 0, {2, 1, 0});
  of_images.unsplit_backward = "entries of the first axis may meet in one row: one thread adds all of them";
  return {taken("an order of the tokens", 1, {2, 0, 3, 1}), taken("some often, some never", -1, {4, 4, 0}),
          of_images};
}

}  // namespace tessera
