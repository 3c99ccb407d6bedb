#include "engine/check/op_case.h"
#include "engine/ops/reduce.h"

namespace tessera {

namespace {

using Reduce = Tensor (*)(const Tensor& x, const std::vector<int>& axes, bool keep);

void append_cases(OpCases& cases, const char* op, Reduce reduce) {
  const auto one = [&](const char* variant, const Shape& shape, const std::vector<int>& axes, bool keep) {
    cases.push_back({op, variant, {random_tensor(shape, 1)}, [=](std::span<const Tensor> in) {
                       return reduce(in[0], axes, keep);
                     }});
  };
  one("all axes", {3, 5, 2}, {0, 1, 2}, false);
  one("last axis", {3, 5, 7}, {-1}, false);
  one("first axis", {6, 5, 2}, {0}, true);
  one("middle axis", {3, 5, 4}, {1}, false);
  one("outer and inner", {3, 4, 2, 5}, {0, 2}, false);
  one("alternating", {2, 3, 4, 5}, {-1, 1}, true);
  one("many rows", {90, 3}, {0}, false);
}

void append_max_cases(OpCases& cases) {
  const auto one = [&](const char* variant, const Shape& shape, int axis, bool keep) {
    cases.push_back({"max", variant, {random_tensor(shape, 2)}, [=](std::span<const Tensor> in) {
                       return max(in[0], axis, keep);
                     }});
  };
  one("last axis", {3, 5, 7}, -1, false);
  one("first axis", {6, 5, 2}, 0, true);
  one("middle axis", {3, 5, 4}, 1, false);
}

}  // namespace

OpCases reduce_cases() {
  OpCases cases;
  append_cases(cases, "sum", sum);
  append_cases(cases, "mean", mean);
  append_max_cases(cases);
  for (OpCase& c : cases)
    if (c.op == "max" && c.variant == "first axis")
      c.unsplit_forward = "one thread reduces the whole of the first axis";
  return cases;
}

}  // namespace tessera
