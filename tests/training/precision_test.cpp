#include "apps/training/precision.h"

#include <doctest/doctest.h>

using namespace tessera;

TEST_CASE("bf16 is advised where it is worth it, and to nobody who chose") {
  const Computing plain, narrow{.precision = Precision::bf16}, gpu{.device = Device::cuda};
  CHECK(bf16_advice(plain, 1.94) ==
        "this processor multiplies in bf16 1.9 times as fast as in f32: --precision bf16");
  CHECK(bf16_advice(plain, 1.49).empty());
  CHECK(bf16_advice(plain, 0).empty());
  CHECK(bf16_advice(narrow, 1.94).empty());
  CHECK(bf16_advice(gpu, 1.94).empty());
}
