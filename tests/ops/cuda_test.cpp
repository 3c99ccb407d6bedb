#include <doctest/doctest.h>

#include <cstdlib>
#include <set>

#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "tests/cuda.h"

using namespace tessera;

// The environment variable TESSERA_CUDA_CASES restricts the checks to the ops that it names, each followed by
// a comma.
TEST_CASE("cuda: every op against the CPU, f64, f32 and bf16") {
  if (!cuda_here()) return;
  const char* chosen = std::getenv("TESSERA_CUDA_CASES");
  int checked = 0;
  for (const OpCase& c : all_cases()) {
    if (chosen && *chosen && std::string(chosen).find(c.op + ",") == std::string::npos) continue;
    CAPTURE(c.name());
    for (const std::string& failure : check_case_on(c, Device::cuda)) FAIL_CHECK(failure);
    ++checked;
  }
  CHECK(checked > 0);
}
