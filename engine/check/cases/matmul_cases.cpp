#include "engine/check/op_case.h"
#include "engine/ops/activations.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/linear.h"
#include "engine/ops/matmul.h"

namespace tessera {

namespace {

using In = std::span<const Tensor>;

OpCase::Function matmul_as(bool transpose_a, bool transpose_b) {
  return [=](In in) { return matmul(in[0], in[1], transpose_a, transpose_b); };
}

// The plain twin of linear: a product, a sum, an activation.
OpCase::Function plain(Activation f) {
  return [f](In in) {
    const Tensor& x = in[0];
    const Tensor rows = x.rank() == 1 ? x.reshape({1, -1}) : x;
    const Tensor z = matmul(rows, in[1], false, true);
    return activation(f, in.size() > 2 ? add(z, in[2]) : z).reshape(x.shape().with(-1, in[1].dim(0)));
  };
}

OpCase::Function fused(Activation f) {
  return [f](In in) { return linear(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), f); };
}

OpCase linear_case(std::string_view variant, const Shape& x, int64_t out, bool bias, Activation f) {
  OpCase op_case{"linear",
                 std::string(variant),
                 {random_tensor(x, 11), random_tensor({out, x[-1]}, 12)},
                 fused(f),
                 plain(f)};
  if (bias) op_case.inputs.push_back(random_tensor({out}, 13));
  return op_case;
}

}  // namespace

OpCases matmul_cases() {
  const auto matrices = [](const Shape& a, const Shape& b) {
    return std::vector{random_tensor(a, 1), random_tensor(b, 2)};
  };
  OpCases cases{
      {"matmul", "", matrices({5, 3}, {3, 7}), matmul_as(false, false)},
      {"matmul", "a transposed", matrices({3, 5}, {3, 7}), matmul_as(true, false)},
      {"matmul", "b transposed", matrices({5, 3}, {7, 3}), matmul_as(false, true)},
      {"matmul", "both transposed", matrices({3, 5}, {7, 3}), matmul_as(true, true)},
      {"matmul", "batched", matrices({2, 3, 4, 5}, {2, 3, 5, 2}), matmul_as(false, false)},
      {"matmul", "one b for all", matrices({3, 4, 5}, {5, 2}), matmul_as(false, false)},
      {"matmul", "one transposed b for all", matrices({3, 4, 5}, {2, 5}), matmul_as(false, true)},
      {"matmul", "one a for all", matrices({4, 5}, {3, 5, 2}), matmul_as(false, false)},
      {"matmul", "one transposed a for all", matrices({5, 4}, {3, 2, 5}), matmul_as(true, true)},
      {"matmul", "some axes broadcast", matrices({2, 1, 3, 4}, {3, 4, 2}), matmul_as(false, false)},
      {"matmul", "times itself", {random_tensor({4, 4}, 3)}, [](In in) { return matmul(in[0], in[0]); }},
      linear_case("", {2, 3, 5}, 7, true, Activation::none),
      linear_case("no bias", {4, 5}, 3, false, Activation::none),
      linear_case("one row", {5}, 3, true, Activation::gelu),
      linear_case("many rows", {600, 3}, 2, true, Activation::silu),
      linear_case("many rows, wide", {150, 3}, 132, true, Activation::gelu),
      linear_case("whole panels", {3, 32}, 32, true, Activation::gelu),
      linear_case("part of a panel", {3, 19}, 18, true, Activation::gelu),
  };
  for (OpCase& c : cases)
    if (c.variant == "one row") c.unsplit_forward = "one row is one tile";
  for (const Activation f : all_activations) cases.push_back(linear_case(name(f), {3, 5}, 6, true, f));
  return cases;
}

}  // namespace tessera
