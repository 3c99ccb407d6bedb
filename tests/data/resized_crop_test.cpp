#include "data/augment/resized_crop.h"
#include "data/augment/randaugment.h"

#include <cmath>
#include <map>
#include <set>

#include "data/augment/autoaugment.h"
#include "data/augment/pipeline.h"
#include "data/formats/resize.h"
#include "data/loader.h"
#include "data/subset.h"
#include "tests/data/files.h"

namespace tessera {

TEST_CASE("resized crop: boxes within area and ratio, everywhere in the picture") {
  Random random(1);
  const ResizedCropOptions options{.min_area = 0.08, .max_area = 1};
  double smallest = 1, largest = 0, widest = 0, narrowest = 9;
  std::set<int64_t> tops;
  for (int i = 0; i < 5000; ++i) {
    const PixelBox box = draw_resized_crop(options, 300, 400, random);
    REQUIRE((box.top >= 0 && box.left >= 0 && box.bottom <= 300 && box.right <= 400 && box.area() > 0));
    const double area = static_cast<double>(box.area()) / 120000;
    const double ratio =
        static_cast<double>(box.right - box.left) / static_cast<double>(box.bottom - box.top);
    smallest = std::min(smallest, area);
    largest = std::max(largest, area);
    widest = std::max(widest, ratio);
    narrowest = std::min(narrowest, ratio);
    tops.insert(box.top);
  }
  CHECK((smallest > 0.078 && smallest < 0.1));
  CHECK((largest > 0.9 && largest <= 1));
  CHECK((widest > 1.3 && widest < 1.36));
  CHECK((narrowest > 0.73 && narrowest < 0.77));
  CHECK(tops.size() > 100);
  // If no draw fits, the largest centred part is taken.
  CHECK(draw_resized_crop({.min_area = 1}, 10, 100, random) == PixelBox{0, 43, 10, 56});
  CHECK(draw_resized_crop({.min_area = 1}, 100, 10, random) == PixelBox{43, 0, 56, 10});
}

TEST_CASE("resized crop: the cut, then Pillow's resize; a mask by the nearest pixel") {
  const Image image = random_image(20, 30, 3);
  const PixelBox box{4, 6, 16, 26};
  Image part(12, 20);
  for (int y = 0; y < 12; ++y)
    for (int x = 0; x < 20; ++x) std::copy_n(image.at(4 + y, 6 + x), 3, part.at(y, x));
  Image linear = image, cubic = image, mask = image;
  crop_and_resize(linear, box, 8, 8, Filter::bilinear, Layer::picture);
  crop_and_resize(cubic, box, 8, 8, Filter::bicubic, Layer::picture);
  crop_and_resize(mask, box, 6, 10, Filter::bicubic, Layer::mask);
  CHECK(linear == resize_bilinear(part, 8, 8));
  CHECK(cubic == resize_bicubic(part, 8, 8));
  for (int y = 0; y < 6; ++y)
    for (int x = 0; x < 10; ++x)
      CHECK(std::equal(mask.at(y, x), mask.at(y, x) + 3, part.at(2 * y + 1, 2 * x + 1)));
  check_refused(
      [&] {
        crop_and_resize(mask, {0, 0, 7, 10}, 4, 4, Filter::bilinear, Layer::picture);
      },
      "rows 0 to 7", "6 x 10");
}

TEST_CASE("resized crop: the loader gives it pictures as they are stored") {
  const TemporaryFolder folder;
  std::vector<FileSplit::Item> items;
  for (int i = 0; i < 4; ++i) {
    items.push_back({folder / (std::to_string(i) + ".png"), 0});
    put_png(items.back().path, random_image(40 + i, 60, static_cast<uint64_t>(i)));
  }
  Dataset dataset;
  dataset.image_shape = {3, 16, 16};
  dataset.train = std::make_shared<FileSplit>(items, 16, 1 << 20);
  const Pipeline pipeline =
      Pipeline::training(dataset, {.resized_crop = ResizedCropOptions{}, .flip = false, .crop_padding = 0});
  CHECK(pipeline.takes_originals());
  CHECK(picture(*subset(dataset.train, 3, 0), 0).height == 16);
  Image stored;
  subset(dataset.train, 3, 0)->original(0, stored);
  CHECK(stored.width == 60);
  Loader loader(dataset.train, pipeline, {.sampler = {.batch = 4, .shuffle = false}, .seed = 9});
  loader.start(0);
  const Batch* batch = loader.next();
  REQUIRE(batch);
  for (int64_t i = 0; i < 4; ++i) {
    Image image = load_image(items[static_cast<size_t>(i)].path);
    std::vector<float> wanted(3 * 16 * 16);
    pipeline(image, Random(9).split(0).split(static_cast<uint64_t>(i)), wanted.data());
    CHECK(std::equal(wanted.begin(), wanted.end(), batch->images.data<float>() + i * 768));
  }
}

TEST_CASE("RandAugment: magnitudes grow from nothing to the strongest") {
  using enum Operation;
  const std::map<Operation, std::pair<double, double>> ends{{shear_x, {0, 0.3}},
                                                            {shear_y, {0, 0.3}},
                                                            {translate_x, {0, 0.45}},
                                                            {translate_y, {0, 0.45}},
                                                            {Operation::rotate, {0, 30}},
                                                            {color, {1, 1.9}},
                                                            {contrast, {1, 1.9}},
                                                            {brightness, {1, 1.9}},
                                                            {sharpness, {1, 1.9}},
                                                            {Operation::posterize, {4, 0}},
                                                            {Operation::solarize, {256, 0}},
                                                            {Operation::solarize_add, {0, 110}}};
  for (const auto& [operation, values] : ends) {
    CHECK(randaugment_magnitude(operation, 0, 1) == doctest::Approx(values.first));
    CHECK(randaugment_magnitude(operation, 10, 1) == doctest::Approx(values.second));
  }
  CHECK(randaugment_magnitude(color, 10, -1) == doctest::Approx(0.1));
  CHECK(randaugment_magnitude(shear_x, 5, -1) == doctest::Approx(-0.15));
  CHECK(randaugment_magnitude(Operation::posterize, 9, 1) == 1);
  CHECK(randaugment_magnitude(Operation::solarize, 9, 1) == 26);
}

TEST_CASE("RandAugment: half of the operations are applied, all kinds come, masks are but moved") {
  const Image image = random_image(12, 12, 4);
  Image flat(12, 12);
  std::fill(flat.pixels.begin(), flat.pixels.end(), uint8_t{7});
  int changed = 0;
  constexpr int draws = 1000;
  const RandAugment once({.operations = 1}, {9, 9, 9});
  for (uint64_t seed = 0; seed < draws; ++seed) {
    Image augmented = image, mask = flat;
    Random random(seed), again(seed);
    once(augmented, random, Layer::picture);
    once(mask, again, Layer::mask);
    CHECK(random.state() == again.state());
    for (const uint8_t v : mask.pixels) REQUIRE((v == 7 || v == 0));
    changed += !(augmented == image);
  }
  CHECK(changed == doctest::Approx(draws / 2.0).epsilon(0.1));
}

TEST_CASE("RandAugment: magnitudes deviate from the option by as much as it says") {
  const Image image = random_image(12, 12, 4);
  const auto distinct = [&](double deviation) {
    const RandAugment always({.operations = 1, .magnitude = 5, .deviation = deviation, .probability = 1},
                             {9, 9, 9});
    std::set<std::vector<uint8_t>> results;
    for (uint64_t seed = 0; seed < 400; ++seed) {
      Image augmented = image;
      Random random(seed);
      always(augmented, random, Layer::picture);
      results.insert(augmented.pixels);
    }
    return results.size();
  };
  CHECK(distinct(0) <= 60);  // fifteen operations, two signs, two filters
  CHECK(distinct(1) > 120);
}

TEST_CASE("AutoAugment: an operation is applied as often as its probability says") {
  for (const std::string& name : policy_names()) {
    CAPTURE(name);
    double wanted = 0;
    for (const SubPolicy& pair : policy(name))
      for (const PolicyStep& step : pair)
        if (change_of(step.operation, policy_magnitude(step.operation, step.index, 1), 32, 32))
          wanted += step.probability / static_cast<double>(policy(name).size());
    constexpr int draws = 4000;
    std::vector<Change> changes;
    const AutoAugment augment(name);
    for (uint64_t seed = 0; seed < draws; ++seed) {
      Random random(seed);
      augment.draw(random, 32, 32, changes);
    }
    CHECK(static_cast<double>(changes.size()) / draws == doctest::Approx(wanted).epsilon(0.05));
  }
}

TEST_CASE("solarize_add: adds below the threshold, within a byte") {
  Image image(1, 1);
  image.pixels = {10, 120, 130};
  apply(Operation::solarize_add, 200, image);
  CHECK(image.pixels == std::vector<uint8_t>{210, 255, 130});
}

}  // namespace tessera
