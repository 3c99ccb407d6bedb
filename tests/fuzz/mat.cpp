#include "data/formats/mat.h"

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const fuzz::MemoryFile file(data, size);
  fuzz::may_refuse(file.path(), [&] {
    for (const MatArray& array : read_mat(file.path()))
      if (std::ssize(array.numbers()) != array.elements()) std::abort();
  });
  return 0;
}
