#include "engine/check/op_case.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/softmax.h"

namespace tessera {

OpCases softmax_cases() {
  using In = std::span<const Tensor>;
  const auto softmax_of = [](In in) { return softmax(in[0]); };
  const auto log_softmax_of = [](In in) { return log_softmax(in[0]); };
  const auto plain = [](In in) { return exp(in[0]) / sum(exp(in[0]), {-1}, true); };
  const auto plain_log = [](In in) { return in[0] - log(sum(exp(in[0]), {-1}, true)); };
  const Tensor cube = random_tensor({2, 3, 5}, 1), wide = random_tensor({3, 70}, 2),
               rows = random_tensor({90, 2}, 3);
  return {
      {"softmax", "", {cube}, softmax_of, plain},
      {"softmax", "wide", {wide}, softmax_of, plain},
      {"softmax", "many rows", {rows}, softmax_of, plain},
      {"log_softmax", "", {cube}, log_softmax_of, plain_log},
      {"log_softmax", "wide", {wide}, log_softmax_of, plain_log},
  };
}

}  // namespace tessera
