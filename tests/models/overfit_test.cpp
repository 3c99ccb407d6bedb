// Each family, small, learns 64 images by heart.

#include "tests/models/overfit.h"

using namespace tessera;

TEST_CASE("every family overfits one batch of 64 images to 100 %") {
  constexpr int64_t images = 64, classes = 4;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < images; ++i) labels.push_back(i * 7 % classes);
  // Noise images with arbitrary classes: only memorising them can succeed.
  check_all_learn({{"input", random_images({images, 3, 16, 16})}, {"target", Tensor::from(labels, {images})}},
                  classes, 150);
}
