#include "data/formats/image.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  fuzz::may_refuse("input.jpeg", [&] { decode_image({data, size}, "input.jpeg"); });
  return 0;
}
