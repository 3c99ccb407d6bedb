#include "engine/check/op_case.h"
#include "engine/ops/rotary.h"

namespace tessera {

OpCases rotary_cases() {
  const auto turned = [](const Tensor& x, int64_t tokens, int64_t head_dim) {
    return rotary(x, turns_of(raster_angles(tokens, head_dim), x.dtype(), x.device()));
  };
  return {{"rotary",
           "two heads",
           {random_tensor({2, 5, 12}, 1)},
           [=](std::span<const Tensor> in) { return turned(in[0], 5, 6); }},
          {"rotary", "one pair", {random_tensor({70, 3, 2}, 1)}, [=](std::span<const Tensor> in) {
             return turned(in[0], 3, 2);
           }}};
}

}  // namespace tessera
