#include "data/subset.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "data/registry.h"
#include "engine/core/error.h"

using namespace tessera;

namespace {

std::shared_ptr<const Split> numbered(int64_t count) {
  std::vector<uint8_t> pixels(static_cast<size_t>(count));
  std::vector<int32_t> labels(static_cast<size_t>(count));
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>(i);
    labels[i] = static_cast<int32_t>(i);
  }
  return std::make_shared<StoredSplit>(1, 1, 1, std::move(pixels), std::move(labels), "numbers");
}

}  // namespace

TEST_CASE("a subset draws pictures by the seed, once each, in their order") {
  const auto whole = numbered(100);
  const auto part = subset(whole, 30, 7);
  REQUIRE(part->size() == 30);
  std::vector<int64_t> labels, again, other;
  Image image;
  for (int64_t i = 0; i < 30; ++i) {
    labels.push_back(part->label(i));
    part->image(i, image);
    CHECK(image.pixels[0] == part->label(i));
    CHECK(part->source(i) == whole->source(part->label(i)));
    again.push_back(subset(whole, 30, 7)->label(i));
    other.push_back(subset(whole, 30, 8)->label(i));
  }
  CHECK(std::is_sorted(labels.begin(), labels.end()));
  CHECK(std::set<int64_t>(labels.begin(), labels.end()).size() == 30);
  CHECK(labels == again);
  CHECK(labels != other);
}

TEST_CASE("all pictures are the split itself, more are refused") {
  const auto whole = numbered(5);
  CHECK(subset(whole, 0, 1) == whole);
  CHECK(subset(whole, 5, 1) == whole);
  CHECK_THROWS_WITH_AS(subset(whole, 6, 1), "data: 6 pictures are asked for, there are 5", Error);
}

TEST_CASE("shapes are made as many as are asked for") {
  DatasetOptions options;
  options.train_images = 20;
  options.validation_images = 10;
  const Dataset dataset = open_dataset("shapes", "", options);
  CHECK(dataset.train->size() == 20);
  CHECK(dataset.validation->size() == 10);
}
