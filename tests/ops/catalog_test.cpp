#include "engine/ops/catalog.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "engine/autograd/tape.h"
#include "engine/check/op_case.h"

using namespace tessera;

TEST_CASE("catalog: each op stands there once, with its formulas") {
  std::set<std::string_view> names;
  for (const Op& op : catalog) {
    CAPTURE(op.name);
    CHECK(names.insert(op.name).second);
    CHECK(!op.forward.empty());
    CHECK(!op.backward.empty());
  }
}

TEST_CASE("catalog: each op has a case, each case an op") {
  std::set<std::string> tested;
  for (const OpCase& c : all_cases()) tested.insert(c.op);
  for (const Op& op : catalog) CHECK_MESSAGE(tested.erase(std::string(op.name)) == 1, "no case of ", op.name);
  for (const std::string& left : tested) FAIL_CHECK("a case of ", left, ", which is not in the catalog");
}

TEST_CASE("catalog: a case records its op, and its names are its own") {
  std::set<std::string> names;
  for (const OpCase& c : all_cases()) {
    CAPTURE(c.name());
    CHECK(names.insert(c.name()).second);
    std::vector<Tensor> inputs;
    for (const Tensor& input : c.inputs) inputs.push_back(input.clone().require_grad());
    Tape tape;
    c.function(inputs);
    const auto is_op = [&](const Tape::Step& step) { return step.op->name == c.op; };
    CHECK(std::any_of(tape.steps().begin(), tape.steps().end(), is_op));
  }
}
