// Each family, small, learns 64 photographs by heart, where TESSERA_DATA names a folder that holds CIFAR-10.

#include <cstdlib>

#include "data/loader.h"
#include "data/registry.h"
#include "tests/models/overfit.h"

using namespace tessera;

TEST_CASE("every family overfits one batch of 64 photographs to 100 %") {
  const char* root = std::getenv("TESSERA_DATA");
  if (root == nullptr ||
      !std::filesystem::is_directory(std::filesystem::path(root) / "cifar-10-batches-bin")) {
    MESSAGE("skipped: TESSERA_DATA is not set to a folder that holds cifar-10-batches-bin");
    return;
  }
  const Dataset dataset = open_dataset("cifar10", root, {.train_images = 64, .validation_images = 64});
  Loader loader(dataset.train, Pipeline(dataset), {.sampler = {.batch = 64}});
  loader.start(0);
  const Batch& batch = *loader.next();
  REQUIRE(batch.images.shape() == Shape{64, 3, 32, 32});
  check_all_learn({{"input", batch.images}, {"target", batch.labels}}, 10, 300);
}
