#include "engine/check/op_case.h"
#include "engine/ops/activations.h"

namespace tessera {

OpCases activation_cases() {
  const auto of = [](const char* op, Tensor (*f)(const Tensor&)) {
    return OpCase{op, "", {random_tensor_away_from_zero({3, 37}, 1)}, [f](std::span<const Tensor> in) {
                    return f(in[0]);
                  }};
  };
  return {of("relu", relu), of("gelu", gelu),       of("gelu_tanh", gelu_tanh),
          of("silu", silu), of("sigmoid", sigmoid), of("log_sigmoid", log_sigmoid),
          of("tanh", tanh)};
}

}  // namespace tessera
