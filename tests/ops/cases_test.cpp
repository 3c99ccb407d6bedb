// Every check of every case in one loop, so that a new op is tested as soon as it has cases.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/parallel.h"

using namespace tessera;

namespace {

// The environment variable TESSERA_CASES restricts the checks to the ops that it names, each followed by a
// comma. Names of no op fail, or nothing would be checked.
OpCases chosen_cases() {
  const char* names = std::getenv("TESSERA_CASES");
  OpCases chosen;
  for (const OpCase& c : all_cases())
    if (!names || !*names || std::string(names).find(c.op + ",") != std::string::npos) chosen.push_back(c);
  REQUIRE_MESSAGE(!chosen.empty(), "TESSERA_CASES is '", std::string(names ? names : ""),
                  "', wanted names of ops like \"conv2d,\"");
  return chosen;
}

// The ops that plain twins are composed of, which need none themselves. gelu is among them because no op
// computes erf.
bool is_primitive(std::string_view op) {
  constexpr std::string_view primitive[] = {
      "add", "subtract",     "multiply", "divide", "scale",    "add_scalar", "cast",
      "exp", "log",          "sqrt",     "square", "absolute", "sum",        "mean",
      "max", "broadcast_to", "permute",  "concat", "slice",    "matmul",     "gelu"};
  return std::find(std::begin(primitive), std::end(primitive), op) != std::end(primitive);
}

}  // namespace

TEST_CASE("ops: gradient, accumulation, types, plain twin and threads of every case") {
  for (const OpCase& c : chosen_cases()) {
    CAPTURE(c.name());
    for (const std::string& failure : check_case(c)) FAIL_CHECK(failure);
  }
}

// This case is quick, so that it can be repeated with each kind of kernels that the machine has or emulates.
// It needs no differences, because the case above has compared the gradients in double with them.
TEST_CASE("ops: f32 and bf16 of every case agree with double, by the kernels in use") {
  for (const OpCase& c : chosen_cases()) {
    CAPTURE(c.name());
    for (const std::string& failure : check_case_on(c, Device::cpu)) FAIL_CHECK(failure);
    const SmallChunks chunks(3);
    for (const std::string& failure : check_case_on(c, Device::cpu)) FAIL_CHECK("in short chunks: ", failure);
  }
}

TEST_CASE("ops: every case of an op that is not primitive has a plain twin") {
  for (const OpCase& c : all_cases()) CHECK_MESSAGE((is_primitive(c.op) || c.plain), c.name(), " has none");
}
