#include "engine/check/op_case.h"
#include "engine/ops/dropout.h"

namespace tessera {

OpCases dropout_cases() {
  using In = std::span<const Tensor>;
  const Tensor x = random_tensor({9, 3, 11}, 1), f = random_tensor({9, 3, 11}, 2);
  OpCase residual{"drop_path", "residual", {x, f}, [](In in) { return drop_path(in[0], in[1], 0, 0); }};
  residual.unsplit_backward = "both gradients are dy itself";
  return {
      {"dropout", "", {x}, [](In in) { return dropout(in[0], 0.3, 5); }},
      {"multiply", "by a dropout of channels", {x}, [](In in) { return channel_dropout(in[0], 0.3, 5); }},
      {"drop_path", "", {x, f}, [](In in) { return drop_path(in[0], in[1], 0.4, 6); }},
      residual,
      {"drop_path", "of itself", {x}, [](In in) { return drop_path(in[0], in[0], 0.4, 6); }},
  };
}

}  // namespace tessera
