#include "data/formats/idx.h"

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

// A plain or gzip file, read as labels and as images.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const fuzz::MemoryFile file(data, size);
  for (const int rank : {1, 3}) fuzz::may_refuse(file.path(), [&] { read_idx(file.path(), rank); });
  return 0;
}
