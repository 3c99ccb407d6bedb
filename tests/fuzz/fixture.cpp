#include "models/check/fixture.h"

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

// A file of reference values, which says what to build and how to compare it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const fuzz::MemoryFile file(data, size);
  fuzz::may_refuse(file.path(), [&] { check_fixture(file.path(), DType::f32); });
  return 0;
}
