#include "engine/check/op_case.h"
#include "engine/ops/elementwise.h"

namespace tessera {

namespace {

using Two = Tensor (*)(const Tensor&, const Tensor&);
using One = Tensor (*)(const Tensor&);

// The ways in which two shapes broadcast; b is kept away from zero, for divide.
void append_binary(OpCases& cases, const char* op, Two f) {
  const auto one = [&](const char* variant, const Shape& a, const Shape& b) {
    cases.push_back({op,
                     variant,
                     {random_tensor(a, 1), random_tensor_away_from_zero(b, 2, 0.5)},
                     [f](std::span<const Tensor> in) { return f(in[0], in[1]); }});
  };
  one("same shape", {3, 5, 7}, {3, 5, 7});
  one("row vector", {4, 5, 3}, {3});
  one("column", {5, 1}, {4, 5, 3});
  one("both stretch", {2, 1, 3, 1}, {4, 1, 5});
  one("scalar", {}, {2, 3});
}

void append_unary(OpCases& cases, const char* op, One f, bool positive = false) {
  Tensor x = random_tensor_away_from_zero({3, 11}, 3, 0.2);
  if (positive) x = absolute(x);
  cases.push_back({op, "", {x}, [f](std::span<const Tensor> in) { return f(in[0]); }});
}

}  // namespace

OpCases elementwise_cases() {
  OpCases cases;
  append_binary(cases, "add", add);
  for (OpCase& c : cases)
    if (c.variant == "same shape") c.unsplit_backward = "the gradient is dy";
  append_binary(cases, "subtract", subtract);
  append_binary(cases, "multiply", multiply);
  append_binary(cases, "divide", divide);
  append_unary(cases, "scale", [](const Tensor& x) { return scale(x, -1.5); });
  append_unary(cases, "add_scalar", [](const Tensor& x) { return add_scalar(x, 0.75); });
  append_unary(cases, "cast", [](const Tensor& x) { return cast(cast(x, DType::f32), DType::f64); });
  // The rounding of x to f32 is divided by the differences' step of 1e-3, so x is made as small.
  cases.back().inputs = {scale(cases.back().inputs[0], 1e-3)};
  cases.back().tolerance = 1e-6;
  cases.back().unsplit_forward = cases.back().unsplit_backward = "Tensor::to converts in one thread";
  append_unary(cases, "exp", exp);
  append_unary(cases, "log", log, true);
  append_unary(cases, "sqrt", sqrt, true);
  append_unary(cases, "square", square);
  append_unary(cases, "absolute", absolute);
  return cases;
}

}  // namespace tessera
