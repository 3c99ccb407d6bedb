#include "data/sets/latents.h"

#include <vector>

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

// The input is the only file of a data set of latents; all of it is read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const fuzz::MemoryFile file(data, size);
  fuzz::may_refuse(file.path(), [&] {
    const Dataset latents = open_latents(file.path(), {});
    std::vector<float> numbers(static_cast<size_t>(latents.image_shape.elements()));
    for (const auto& split : {latents.train, latents.validation})
      for (int64_t i = 0; i < split->size(); ++i) {
        if (split->label(i) >= latents.classes()) std::abort();
        split->latent(i, Random(0), numbers.data());
      }
  });
  return 0;
}
