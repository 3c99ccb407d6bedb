#include <algorithm>
#include <cmath>

#include "data/augment/autoaugment.h"
#include "data/augment/crop.h"
#include "data/augment/flip.h"
#include "data/loader.h"
#include "data/subset.h"
#include "tests/data/files.h"

// Masks for segmentation: every augmentation moves them as it moves their images.

namespace tessera {

TEST_CASE("masks: the loader moves them as their pictures, margins are of no class") {
  // The red channel of the images equals the mask, so that equal moves keep them equal.
  constexpr int size = 8;
  constexpr int64_t images = 12;
  std::vector<uint8_t> masks = random_bytes(images * size * size, 1), pixels;
  for (uint8_t& byte : masks) byte = static_cast<uint8_t>(1 + byte % 9);
  for (const uint8_t byte : masks) pixels.insert(pixels.end(), {byte, 0, 0});
  Dataset dataset;
  dataset.image_shape = {3, size, size};
  dataset.normalisation = {{0, 0, 0}, {1, 1, 1}};
  dataset.train =
      std::make_shared<MaskedSplit>(size, size, pixels, masks, std::vector<int32_t>(images), "test");
  const Pipeline pipeline = Pipeline::training(dataset, {.flip = true, .crop_padding = 3});
  Loader loader(subset(dataset.train, images - 1, 0), pipeline, {.sampler = {.batch = 5}, .seed = 2});
  loader.start(0);
  int64_t batches = 0, margins = 0;
  for (; const Batch* batch = loader.next(); ++batches) {
    REQUIRE(batch->masks.shape() == Shape{batch->images.dim(0), size, size});
    const std::vector<int64_t> classes = batch->masks.integers();
    for (size_t p = 0; p < classes.size(); ++p) {
      const size_t image = p / (size * size), pixel = p % (size * size);
      const float red = batch->images.data<float>()[image * 3 * size * size + pixel] * 255;
      CHECK(classes[p] == (red < 0.5f ? Pipeline::none : std::lround(red) - 1));
      margins += classes[p] == Pipeline::none;
    }
  }
  CHECK(batches == 2);
  CHECK(margins > 0);
  check_refused([&] { Loader(dataset.train, pipeline, {.sampler = {.batch = 5}, .mix = {.mixup = 1}}); },
                "masks are not mixed");
}

TEST_CASE("masks: under the whole policies one moves with its picture and keeps its classes") {
  // The image's red channel is its mask; shears and rotations must move both by one map.
  constexpr int size = 16;
  Dataset dataset;
  dataset.image_shape = {3, size, size};
  dataset.normalisation = {{0, 0, 0}, {1, 1, 1}};
  Image classes(size, size);
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x)
      std::fill_n(classes.at(y, x), 3, static_cast<uint8_t>(1 + y / 4 * 4 + x / 4));
  for (const char* name : {"cifar10", "svhn", "imagenet"}) {
    const Pipeline pipeline = Pipeline::training(dataset, {.autoaugment = name});
    std::vector<int64_t> before(size * size), after(size * size);
    int moved = 0;
    for (uint64_t seed = 0; seed < 200; ++seed) {
      Image mask = classes;
      pipeline.mask(mask, Random(seed), after.data());
      for (const int64_t k : after) REQUIRE((k == Pipeline::none || (k >= 0 && k < 16)));
      // Take the same draws, but apply only the operations that move pixels.
      Image wanted = classes;
      Random random(seed);
      RandomFlip{}(wanted, random, Layer::mask);
      PaddedCrop{4}(wanted, random, Layer::mask);
      const auto& chosen = policy(name)[static_cast<size_t>(random.below(25))];
      for (const PolicyStep& step : chosen) {
        if (!random.chance(step.probability)) continue;
        const int sign = have_sign(step.operation) && random.chance(0.5) ? -1 : 1;
        if (!moves(step.operation)) continue;
        apply(step.operation, policy_magnitude(step.operation, step.index, sign), wanted, Layer::mask);
        ++moved;
      }
      Pipeline(dataset).mask(wanted, Random(0), before.data());
      REQUIRE(after == before);
    }
    CHECK(moved > 10);
  }
}

}  // namespace tessera
