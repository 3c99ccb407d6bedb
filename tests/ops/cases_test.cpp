// Every check of every case, in one loop: a new op with its cases is tested here without a word more.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"

using namespace tessera;

namespace {

// TESSERA_CASES: names of ops, each followed by a comma, to check these alone.
bool chosen(const OpCase& c) {
  const char* names = std::getenv("TESSERA_CASES");
  return !names || !*names || std::string(names).find(c.op + ",") != std::string::npos;
}

// What the plain twins are composed of. gelu is here because no op computes erf.
bool is_primitive(std::string_view op) {
  constexpr std::string_view primitive[] = {
      "add", "subtract",     "multiply", "divide", "scale",    "add_scalar", "cast",
      "exp", "log",          "sqrt",     "square", "absolute", "sum",        "mean",
      "max", "broadcast_to", "permute",  "concat", "slice",    "matmul",     "gelu"};
  return std::find(std::begin(primitive), std::end(primitive), op) != std::end(primitive);
}

}  // namespace

TEST_CASE("ops: gradient, accumulation, types, plain twin and threads of every case") {
  for (const OpCase& c : all_cases()) {
    if (!chosen(c)) continue;
    CAPTURE(c.name());
    for (const std::string& failure : check_case(c)) FAIL_CHECK(failure);
  }
}

TEST_CASE("ops: every case of an op that is not primitive has a plain twin") {
  for (const OpCase& c : all_cases()) CHECK_MESSAGE((is_primitive(c.op) || c.plain), c.name(), " has none");
}
