#include <cmath>

#include "data/augment/photometric.h"
#include "data/augment/scene_crop.h"
#include "data/loader.h"
#include "data/subset.h"
#include "engine/io/safetensors.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

// A mask and an image whose red channel equals the mask: halves of class + 1 = 3 and 9, and between them a
// strip without a class.
struct Scene {
  Scene(int height, int width) : mask(height, width), picture(height, width) {
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const uint8_t k = 2 * x < width - 8 ? 3 : 2 * x < width + 8 ? 0 : 9;
        std::fill_n(mask.at(y, x), 3, k);
        picture.at(y, x)[0] = static_cast<uint8_t>(20 * k);
      }
  }

  Image mask, picture;
};

// Images with masks, stored in various sizes and fitted to 16 x 16.
class Scenes : public Split {
 public:
  int64_t size() const override { return 6; }
  int64_t label(int64_t) const override { return 0; }
  std::string source(int64_t i) const override { return "scene " + std::to_string(i); }
  bool has_masks() const override { return true; }
  void original(int64_t i, Image& out) const override { out = scene(i).picture; }
  void original_mask(int64_t i, Image& out) const override { out = scene(i).mask; }
  void image(int64_t, Image& out) const override { out = Image(16, 16); }
  void mask(int64_t, Image& out) const override { out = Image(16, 16); }

 private:
  static Scene scene(int64_t i) { return {30 + static_cast<int>(i), 64 - 4 * static_cast<int>(i)}; }
};

}  // namespace

TEST_CASE("photometric: OpenCV's bytes") {
  const TensorFile file = read_safetensors(TESSERA_FIXTURES "/augment/photometric.safetensors");
  const auto image_of = [](const Tensor& pixels) {
    Image image(static_cast<int>(pixels.dim(0)), static_cast<int>(pixels.dim(1)));
    std::copy_n(pixels.data<uint8_t>(), image.pixels.size(), image.pixels.begin());
    return image;
  };
  int compared = 0;
  for (const auto& tensor : file.tensors) {
    const std::string& name = tensor.first;
    if (name == "picture") continue;
    CAPTURE(name);
    const size_t dot = name.find('.');
    const std::string what = name.substr(0, dot);
    const auto by = static_cast<float>(std::stod(name.substr(dot + 1)));
    Image image = image_of(file.at("picture"));
    if (what == "contrast") scale_values(image, by, 0);
    if (what == "brightness") scale_values(image, 1, by);
    if (what == "saturation") scale_saturation(image, by);
    if (what == "hue") shift_hue(image, std::lround(by));
    CHECK(image == image_of(tensor.second));
    ++compared;
  }
  CHECK(compared == 12);
}

TEST_CASE("photometric: each of the four half of the time, in both orders; masks take the same draws") {
  const Image image = random_image(6, 5, 1);
  Image flat(6, 5);
  std::fill(flat.pixels.begin(), flat.pixels.end(), uint8_t{7});
  constexpr int draws = 2000;
  const auto share_changed = [&](PhotometricOptions options) {
    int changed = 0;
    for (uint64_t seed = 0; seed < draws; ++seed) {
      Image picture = image, mask = flat;
      Random random(seed), again(seed);
      Photometric{options}(picture, random, Layer::picture);
      Photometric{options}(mask, again, Layer::mask);
      REQUIRE(random.state() == again.state());
      REQUIRE(mask == flat);
      changed += !(picture == image);
    }
    return changed / static_cast<double>(draws);
  };
  // The conversion to HSV bytes and back alone changes an image, so first measure it with all changes at
  // zero.
  PhotometricOptions still{.brightness = 0, .min_contrast = 1, .max_contrast = 1};
  still.min_saturation = still.max_saturation = 1;
  still.hue = 0;
  PhotometricOptions bright = still, contrast = still;
  bright.brightness = 32;
  contrast.min_contrast = 0.5;
  contrast.max_contrast = 0.6;
  const double plain = share_changed(still);  // by the conversion alone
  CHECK(plain == doctest::Approx(0.75).epsilon(0.05));
  CHECK(share_changed(bright) == doctest::Approx(1 - 0.25 / 2).epsilon(0.05));
  CHECK(share_changed(contrast) == doctest::Approx(1 - 0.25 / 2).epsilon(0.05));
}

TEST_CASE("scene crop: the short side is scaled, the long one has its limit") {
  const SceneCrop crop({.longest = 4}, 64, 64);
  CHECK(crop.scaled_size(100, 200, 1) == std::array{64, 128});
  CHECK(crop.scaled_size(100, 200, 0.5) == std::array{32, 64});
  CHECK(crop.scaled_size(683, 512, 2) == std::array{171, 128});
  CHECK(crop.scaled_size(10, 100, 1) == std::array{26, 256});
  CHECK(crop.scaled_size(1, 1000, 1) == std::array{1, 256});
}

TEST_CASE("scene crop: of boxes that one class fills, another one is drawn") {
  const Scene scene(40, 200);
  const SceneCrop crop({}, 40, 40), any({.most_of_one_class = 1}, 40, 40);
  int mixed = 0, mixed_without = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed), other(seed);
    const PixelBox box = crop.draw_box(scene.mask, random);
    REQUIRE((box.top == 0 && box.bottom == 40 && box.left >= 0 && box.right == box.left + 40 &&
             box.right <= 200));
    // Of the 32 labelled pixels in a box across the strip, fewer than 24 lie on one side.
    const auto is_mixed = [](const PixelBox& b) { return b.left > 96 - 24 && b.right < 104 + 24; };
    mixed += is_mixed(box);
    mixed_without += is_mixed(any.draw_box(scene.mask, other));
  }
  const double one = 15.0 / 161;  // of all places
  CHECK(mixed_without / 300.0 == doctest::Approx(one).epsilon(0.5));
  CHECK(mixed / 300.0 == doctest::Approx(1 - std::pow(1 - one, 11)).epsilon(0.15));
}

TEST_CASE("scene crop: pictures and masks of any shape move together, margins are mean and of no class") {
  Dataset dataset;
  dataset.image_shape = {3, 16, 16};
  dataset.normalisation = {{0.4f, 0.4f, 0.4f}, {1, 1, 1}};
  dataset.train = std::make_shared<Scenes>();
  const AugmentOptions options{
      .scene_crop = SceneCropOptions{.most_of_one_class = 1}, .flip = true, .crop_padding = 0};
  const Pipeline pipeline = Pipeline::training(dataset, options);
  Loader loader(subset(dataset.train, 5, 0), pipeline, {.sampler = {.batch = 5}, .seed = 2});
  int64_t margins = 0, classes[2] = {};
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    loader.start(epoch);
    const Batch* batch = loader.next();
    REQUIRE(batch);
    for (int64_t p = 0; p < 5 * 256; ++p) {
      const int64_t k = batch->masks.data<int64_t>()[p];
      const float red = batch->images.data<float>()[p / 256 * 768 + p % 256] + 0.4f;
      const bool margin = std::abs(red - 0.4f) < 1e-3f;
      margins += margin;
      if (margin && k == Pipeline::none) continue;
      REQUIRE((k == 2 || k == 8 || k == Pipeline::none));
      if (k == 2 || k == 8) ++classes[k == 8];
      // Between two classes the image is blurred, while the mask has one of the two.
      if (std::abs(255 * red - 60) < 1) CHECK(k == 2);
      if (std::abs(255 * red - 180) < 1) CHECK(k == 8);
    }
  }
  CHECK((margins > 500 && classes[0] > 2000 && classes[1] > 2000));

  AugmentOptions both = options;
  both.resized_crop.emplace();
  check_refused([&] { Pipeline::training(dataset, both); }, "give one of them");
  Dataset plain = dataset;
  plain.train =
      std::make_shared<StoredSplit>(16, 16, 1, std::vector<uint8_t>(256), std::vector<int32_t>(1), "plain");
  check_refused([&] { Loader(plain.train, pipeline, {.sampler = {.batch = 1}}); }, "these have none");
  Image picture(4, 4), mask(4, 5);
  check_refused([&] { pipeline.cut_scene(picture, mask, Random(0)); }, "4 x 4", "4 x 5");
}

}  // namespace tessera
