#include "data/formats/mat.h"

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

// What list_mat lets pass, matio reads.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const fuzz::MemoryFile file(data, size);
  fuzz::may_refuse(file.path(), [&] {
    for (const MatVariable& variable : list_mat(file.path())) {
      if (variable.elements() > 1 << 20) continue;
      if (variable.array_class == mat_uint8) read_mat_bytes(file.path(), variable);
      read_mat_numbers(file.path(), variable);
    }
  });
  return 0;
}
