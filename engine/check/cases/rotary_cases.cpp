#include "engine/check/op_case.h"
#include "engine/ops/rotary.h"

namespace tessera {

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
