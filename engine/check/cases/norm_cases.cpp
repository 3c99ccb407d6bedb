#include "engine/check/op_case.h"
#include "engine/ops/norm.h"

namespace tessera {

OpCases norm_cases() {
  const auto function = [](std::span<const Tensor> in) { return layer_norm(in[0], in[1], in[2], 1e-5); };
  const auto wide = [&](int64_t rows, int64_t width, const char* variant) {
    return OpCase{"layer_norm",
                  variant,
                  {random_tensor({rows, width}, 7), random_tensor({width}, 8), random_tensor({width}, 9)},
                  function};
  };
  return {
      wide(9, 192, "192 wide"),
      wide(3, 258, "258 wide"),
      wide(2, 600, "600 wide"),
      wide(2, 1030, "1030 wide"),
      {"layer_norm",
       "",
       {random_tensor({3, 5, 7}, 1), random_tensor({7}, 2), random_tensor({7}, 3)},
       function},
      {"layer_norm",
       "many rows",
       {random_tensor({70, 3}, 4), random_tensor({3}, 5), random_tensor({3}, 6)},
       function},
  };
}

}  // namespace tessera
