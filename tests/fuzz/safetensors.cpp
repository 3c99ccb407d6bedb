#include "engine/io/safetensors.h"

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const fuzz::MemoryFile file(data, size);
  fuzz::may_refuse(file.path(), [&] { read_safetensors(file.path()); });
  return 0;
}
