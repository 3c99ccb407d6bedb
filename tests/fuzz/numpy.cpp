#include "data/formats/numpy.h"

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const fuzz::MemoryFile file(data, size);
  fuzz::may_refuse(file.path(), [&] {
    for (const auto& [name, tensor] : read_numpy(file.path()))
      if (std::ssize(tensor.values()) != tensor.elements()) std::abort();
  });
  return 0;
}
