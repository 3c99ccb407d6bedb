#include "data/sets/shapes.h"

#include "data/sets/outline.h"
#include "engine/core/parallel.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

std::vector<uint8_t> all_pixels(const Split& split) {
  std::vector<uint8_t> all;
  for (int64_t i = 0; i < split.size(); ++i) {
    const Image image = picture(split, i);
    all.insert(all.end(), image.pixels.begin(), image.pixels.end());
  }
  return all;
}

ShapesOptions few(uint64_t seed = 0) {
  ShapesOptions options;
  options.train = 200;
  options.validation = 100;
  options.seed = seed;
  return options;
}

}  // namespace

TEST_CASE("shapes: balanced, the same for a seed on any thread count, other pictures for another") {
  const Dataset dataset = make_shapes(few());
  CHECK(dataset.classes() == 10);
  CHECK(dataset.image_shape == Shape{3, 32, 32});
  CHECK(class_counts(*dataset.train, 10) == std::vector<int64_t>(10, 20));
  CHECK(class_counts(*dataset.validation, 10) == std::vector<int64_t>(10, 10));
  set_threads(1);
  const Dataset again = make_shapes(few());
  set_threads(0);
  CHECK(all_pixels(*again.train) == all_pixels(*dataset.train));
  CHECK(all_pixels(*again.validation) == all_pixels(*dataset.validation));
  const auto train = all_pixels(*dataset.train), held_out = all_pixels(*dataset.validation);
  CHECK_FALSE(std::equal(held_out.begin(), held_out.end(), train.begin()));
  CHECK(all_pixels(*make_shapes(few(1)).train) != all_pixels(*dataset.train));
}

TEST_CASE("shapes: the mask is where the shape lies") {
  for (int64_t label = 0; label < 10; ++label) {
    CAPTURE(label);
    for (const int size : {16, 32, 64}) {
      const ShapePicture drawn = draw_shape(label, size, Random(3).split(static_cast<uint64_t>(label)));
      CHECK(drawn.image.height == size);
      const double share =
          static_cast<double>(std::count(drawn.mask.begin(), drawn.mask.end(), 1)) / (size * size);
      CHECK(share > 0.04);
      CHECK(share < 0.75);
    }
  }
}

TEST_CASE("shapes: colour says nothing about the class") {
  const Dataset dataset = make_shapes(few());
  for (size_t channel = 0; channel < 3; ++channel) {
    double total = 0;
    std::vector<double> means(10, 0.0);
    for (int64_t i = 0; i < dataset.train->size(); ++i) {
      const Image image = picture(*dataset.train, i);
      for (size_t p = channel; p < image.pixels.size(); p += 3) {
        means[static_cast<size_t>(dataset.train->label(i))] += image.pixels[p] / (1024.0 * 20);
        total += image.pixels[p] / (1024.0 * 200);
      }
    }
    for (const double mean : means)
      CHECK(std::abs(mean - total) < 45);  // about 3 standard deviations of a mean of 20 values
  }
}

TEST_CASE("shapes: sizes and counts that make no sense") {
  check_refused([] { draw_shape(10, 32, Random(0)); }, "class 10");
  ShapesOptions options = few();
  options.image_size = 8;
  check_refused([&] { make_shapes(options); }, "image size 8");
  check_refused([] { make_shapes({.image_size = 513}); }, "image size 513; 16 to 512 pixels are drawn");
  check_refused([] { make_shapes({.image_size = 16, .train = 0}); }, "0 training and ", "both need one");
  check_refused([] { make_shapes({.image_size = 16, .validation = 0}); }, "and 0 validation images");
  check_refused([] { draw_shape(10, 16, Random(0)); }, "shapes: class 10; there are 10");
  options = few();
  options.train = 0;
  check_refused([&] { make_shapes(options); }, "0 training");
}

TEST_CASE("scenes: each pixel has its class, the same on any thread count") {
  const ShapesOptions options = few();
  const Dataset dataset = make_shape_scenes(options);
  CHECK(dataset.class_names == scene_names());
  REQUIRE(dataset.train->has_masks());
  set_threads(1);
  const Dataset again = make_shape_scenes(options);
  set_threads(0);
  CHECK(all_pixels(*again.train) == all_pixels(*dataset.train));
  std::vector<int64_t> pixels(7);  // counts by the mask's byte
  Image mask, same;
  for (int64_t i = 0; i < dataset.train->size(); ++i) {
    dataset.train->mask(i, mask);
    again.train->mask(i, same);
    CHECK(mask == same);
    REQUIRE(mask.pixels.size() == 32 * 32 * 3);
    for (size_t p = 0; p < mask.pixels.size(); ++p) {
      REQUIRE(mask.pixels[p] >= 1);
      REQUIRE(mask.pixels[p] <= 6);
      CHECK(mask.pixels[p] == mask.pixels[p / 3 * 3]);
      ++pixels[mask.pixels[p]];
    }
  }
  for (size_t k = 1; k < pixels.size(); ++k) CHECK(pixels[k] > 200 * 32 * 32 * 3 / 50);
}

TEST_CASE("scenes: the first shape's class is that of some shape; a split of labels has no masks") {
  check_refused([] { draw_scene(0, 32, Random(0)); }, "class 0");
  check_refused([] { draw_scene(6, 32, Random(0)); }, "class 6");
  Image mask;
  const Dataset plain = make_shapes(few());
  CHECK_FALSE(plain.train->has_masks());
  check_refused([&] { plain.train->mask(3, mask); }, "image 3", "no mask");
}

TEST_CASE("outline: coverage is the area in each pixel") {
  const Outline square{{{{1, 1}, {3, 1}, {3, 2.5}, {1, 2.5}}}};
  const std::vector<float> covered = coverage(square, 4);
  const std::vector<float> wanted = {0, 0, 0, 0, 0, 1, 1, 0, 0, 0.5f, 0.5f, 0, 0, 0, 0, 0};
  for (size_t i = 0; i < 16; ++i) CHECK(covered[i] == doctest::Approx(wanted[i]));
  const Outline frame{{{{0, 0}, {4, 0}, {4, 4}, {0, 4}}, {{1, 1}, {3, 1}, {3, 3}, {1, 3}}}};
  float sum = 0;
  for (const float c : coverage(frame, 4)) sum += c;
  CHECK(sum == doctest::Approx(12));
  const Outline outside = transformed(square, {1, 0, -10, 0, 1, 0});
  for (const float c : coverage(outside, 4)) CHECK(c == 0);
}

}  // namespace tessera
