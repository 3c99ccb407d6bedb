#include "data/augment/crop.h"
#include "data/augment/flip.h"
#include "data/augment/pipeline.h"
#include "engine/io/safetensors.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

// An image whose red values are `values`, row by row; green is 100 more, blue 200 more.
Image image_of(int height, int width, const std::vector<uint8_t>& values) {
  Image image(height, width);
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t c = 0; c < 3; ++c) image.pixels[3 * i + c] = static_cast<uint8_t>(values[i] + 100 * c);
  return image;
}

Dataset one_picture(const Image& image) {
  Dataset dataset;
  dataset.image_shape = {3, image.height, image.width};
  dataset.normalisation = {{0.5f, 0.25f, 0.0f}, {0.5f, 0.25f, 1.0f}};
  return dataset;
}

std::vector<float> run(const Pipeline& pipeline, Image image, uint64_t seed = 0) {
  std::vector<float> out(static_cast<size_t>(pipeline.image_shape().elements()));
  pipeline(image, Random(seed), out.data());
  return out;
}

}  // namespace

TEST_CASE("flip: left becomes right, pixel by pixel") {
  Image image = image_of(2, 3, {1, 2, 3, 4, 5, 6});
  flip_horizontally(image);
  CHECK(image == image_of(2, 3, {3, 2, 1, 6, 5, 4}));
}

TEST_CASE("crop: a shift brings in black, whatever its direction") {
  const Image image = random_image(5, 6, 1);
  for (int down = -7; down <= 7; ++down)
    for (int right = -7; right <= 7; ++right) {
      CAPTURE(down);
      CAPTURE(right);
      Image shifted = image, wanted(5, 6);
      shift_image(shifted, down, right);
      for (int y = 0; y < 5; ++y)
        for (int x = 0; x < 6; ++x)
          for (int c = 0; c < 3; ++c) {
            const bool inside = y + down >= 0 && y + down < 5 && x + right >= 0 && x + right < 6;
            wanted.at(y, x)[c] = inside ? image.at(y + down, x + right)[c] : 0;
          }
      CHECK(shifted == wanted);
    }
}

TEST_CASE("crop: every offset of 0 .. 2 padding comes, evenly") {
  Image image(9, 9);
  image.at(4, 4)[0] = 255;
  std::vector<int> counts(25, 0);
  Random random(1);
  for (int i = 0; i < 2500; ++i) {
    Image cropped = image;
    PaddedCrop{2}(cropped, random, Layer::picture);
    const auto at = std::max_element(cropped.pixels.begin(), cropped.pixels.end()) - cropped.pixels.begin();
    const int64_t y = at / 27 - 2, x = at / 3 % 9 - 2;
    REQUIRE((y >= 0 && y < 5 && x >= 0 && x < 5));
    ++counts[static_cast<size_t>(5 * y + x)];
  }
  for (const int count : counts) CHECK(std::abs(count - 100) < 40);
}

TEST_CASE("normalise: (v / 255 - mean) / deviation, planes") {
  const Image image = image_of(1, 2, {0, 51});
  const std::vector<float> out = run(Pipeline(one_picture(image)), image);
  const std::vector<float> wanted = {
      -1, -0.6f, (100 / 255.0f - 0.25f) / 0.25f, (151 / 255.0f - 0.25f) / 0.25f, 200 / 255.0f, 251 / 255.0f};
  for (size_t i = 0; i < 6; ++i) CHECK(out[i] == doctest::Approx(wanted[i]).epsilon(1e-6));
}

TEST_CASE("normalise: the authors' values") {
  const TensorFile file = read_safetensors(std::string(TESSERA_FIXTURES) + "/augment/mix.safetensors");
  Image image(32, 32);
  std::copy_n(file.at("image").data<uint8_t>(), image.pixels.size(), image.pixels.begin());
  const std::pair<const char*, Normalisation> cases[] = {
      {"normalize.cifar10", {{0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f}}},
      {"normalize.imagenet", imagenet_normalisation},
  };
  for (const auto& dataset : cases) {
    const std::string name = dataset.first;
    CAPTURE(name);
    std::vector<float> out(3072);
    Normalise{dataset.second}(image, out.data());
    const float* wanted = file.at(name).data<float>();
    for (size_t i = 0; i < out.size(); ++i) CHECK(out[i] == doctest::Approx(wanted[i]).epsilon(2e-7));
  }
}

TEST_CASE("pipeline: flip comes before the crop, bytes before floats") {
  const Image image = random_image(8, 8, 2);
  const Dataset dataset = one_picture(image);
  const Pipeline pipeline = Pipeline::training(dataset, {.flip = true, .crop_padding = 2});
  int flipped = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    Image wanted = image;
    const bool flip = random.chance(0.5);
    if (flip) flip_horizontally(wanted);
    const int down = static_cast<int>(random.below(5)) - 2, right = static_cast<int>(random.below(5)) - 2;
    shift_image(wanted, down, right);
    CHECK(run(pipeline, image, seed) == run(Pipeline(dataset), wanted));
    flipped += flip;
  }
  CHECK(flipped > 3);
  CHECK(flipped < 17);
  const Pipeline plain = Pipeline::training(dataset, {.flip = false, .crop_padding = 0});
  CHECK(run(plain, image, 1) == run(Pipeline(dataset), image));
}

TEST_CASE("pipeline: operations run in the order in which they were added") {
  const Image image = image_of(1, 1, {10});
  Pipeline pipeline(one_picture(image));
  std::string order;
  pipeline.then(PixelOp([&](Image&, Random&, Layer) { order += "a"; }));
  pipeline.then(PixelOp([&](Image&, Random&, Layer) { order += "b"; }));
  run(pipeline, image);
  CHECK(order == "ab");
  pipeline.then(PixelOp([](Image& changed, Random&, Layer) { changed.resize(2, 2); }));
  check_refused([&] { run(pipeline, image); }, "2 x 2", "[3, 1, 1]");
  check_refused([&] { Pipeline::training(one_picture(image), {.flip = true, .crop_padding = -1}); }, "-1");
}

}  // namespace tessera
