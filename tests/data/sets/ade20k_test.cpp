#include "data/sets/ade20k.h"

#include "data/augment/pipeline.h"
#include "data/check.h"
#include "data/formats/resize.h"
#include "data/registry.h"
#include "tests/data/files.h"
#include "tests/data/formats/grey_png.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> stripes(int height, int width) {
  std::vector<uint8_t> mask(static_cast<size_t>(height) * static_cast<size_t>(width));
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<uint8_t>(i % static_cast<size_t>(width) / 4);
  return mask;
}

void put_pair(const fs::path& root, const std::string& split, const std::string& name, int height,
              int width) {
  put_png(root / "images" / split / (name + ".jpg"), random_image(height, width, 1));
  put(root / "annotations" / split / (name + ".png"), png_of(height, width, stripes(height, width)));
}

void put_all(const fs::path& root) {
  put_pair(root, "training", "ADE_train_00000001", 16, 16);
  put_pair(root, "training", "ADE_train_00000002", 24, 48);
  put_pair(root, "validation", "ADE_val_00000001", 16, 16);
}

Image mask_of(const Split& split, int64_t i) {
  Image mask;
  split.mask(i, mask);
  return mask;
}

}  // namespace

TEST_CASE("ade20k: pictures with a class for each pixel, 0 for none") {
  const TemporaryFolder folder;
  put_all(folder / "ADEChallengeData2016");
  for (const auto& dir : {folder.path(), folder / "ADEChallengeData2016"}) {
    const Dataset dataset = open_dataset("ade20k", dir, {.image_size = 16});
    CHECK(dataset.classes() == 150);
    CHECK(dataset.class_names[0] == "class 1");
    CHECK(dataset.train->size() == 2);
    CHECK(dataset.validation->size() == 1);
    CHECK(dataset.train->has_masks());
    CHECK(dataset.train->source(1).ends_with("ADE_train_00000002.jpg"));
    CHECK(picture(*dataset.train, 0) == random_image(16, 16, 1));
    const Image mask = mask_of(*dataset.train, 0);
    for (const int x : {0, 3, 4, 15}) CHECK(mask.at(7, x)[1] == x / 4);
    // The batch holds the file's value - 1, or `none` for 0.
    Image copy = mask;
    std::vector<int64_t> labels(256);
    Pipeline(dataset).mask(copy, Random(0), labels.data());
    CHECK(labels[0] == Pipeline::none);
    CHECK(labels[15] == 2);
  }
  CHECK(open_ade20k(folder.path(), {}).image_shape == Shape{3, 512, 512});
}

TEST_CASE("ade20k: a mask is fitted as its picture is, by the nearest pixel") {
  const TemporaryFolder folder;
  put_all(folder.path());
  const Dataset dataset = open_ade20k(folder.path(), {.image_size = 12});
  const Image mask = mask_of(*dataset.train, 1);  // 48 x 24 halved, columns 6 to 17 of 24
  REQUIRE((mask.width == 12 && mask.height == 12));
  for (int x = 0; x < 12; ++x) CHECK(mask.at(5, x)[0] == (2 * (x + 6) + 1) / 4);
  CHECK(picture(*dataset.train, 1).width == 12);

  Image wide(2, 4);
  for (int x = 0; x < 4; ++x) std::fill_n(wide.at(0, x), 3, static_cast<uint8_t>(x));
  for (int x = 0; x < 4; ++x) std::fill_n(wide.at(1, x), 3, static_cast<uint8_t>(4 + x));
  const Image large = fit_square_nearest(wide, 4, "wide");  // columns 2 to 5 of 8
  for (int x = 0; x < 4; ++x) CHECK(large.at(1, x)[2] == (x + 2) / 2);
  CHECK(large.at(3, 0)[0] == 5);
  CHECK(fit_square_nearest(large, 4, "same") == large);
}

TEST_CASE("ade20k: names come from objectInfo150.txt") {
  const TemporaryFolder folder;
  put_all(folder.path());
  std::string text = "Idx\tRatio\tTrain\tVal\tStuff\tName\n";
  for (int k = 1; k <= 150; ++k)
    text += std::to_string(k) + "\t0.1\t5\t1\t0\tthing " + std::to_string(k) + ", x\n";
  put(folder / "objectInfo150.txt", text);
  CHECK(open_ade20k(folder.path(), {}).class_names[149] == "thing 150, x");
  const auto open = [&] { open_ade20k(folder.path(), {}); };
  put(folder / "objectInfo150.txt", text.substr(0, text.find("150\t")));
  check_refused(open, "objectInfo150.txt", "149 classes");
  put(folder / "objectInfo150.txt", std::string("Idx\n2\tx\n"));
  check_refused(open, "objectInfo150.txt", "where class 1 was expected");
}

TEST_CASE("ade20k: what is wrong with the folders is named") {
  const TemporaryFolder folder;
  const auto open = [&] { open_ade20k(folder.path(), {}); };
  check_refused(open, "annotations", "ADEChallengeData2016.zip");
  put_all(folder.path());
  CHECK_NOTHROW(open());

  fs::remove(folder / "annotations" / "training" / "ADE_train_00000002.png");
  check_refused(open, "ADE_train_00000002.jpg", "no annotation");
  put_all(folder.path());
  fs::remove(folder / "images" / "validation" / "ADE_val_00000001.jpg");
  check_refused(open, "images/validation", "holds no picture");
  put_all(folder.path());
  put(folder / "annotations" / "validation" / "extra.png", std::string("x"));
  check_refused(open, "extra.png", "no picture");
  fs::remove(folder / "annotations" / "validation" / "extra.png");
  put(folder / "images" / "training" / "notes.txt", std::string("x"));
  check_refused(open, "notes.txt", "NAME.jpg");
  fs::remove(folder / "images" / "training" / "notes.txt");
  fs::remove_all(folder / "images" / "validation");
  check_refused(open, "images/validation", "no such folder");
}

TEST_CASE("ade20k: what is wrong with an annotation is named when it is read") {
  const TemporaryFolder folder;
  put_all(folder.path());
  const Dataset dataset = open_ade20k(folder.path(), {.image_size = 16});
  const fs::path path = folder / "annotations" / "training" / "ADE_train_00000001.png";
  const auto read = [&] { mask_of(*dataset.train, 0); };
  const auto refused = [&](const std::vector<uint8_t>& bytes, const std::string& why) {
    put(path, bytes);
    check_refused(read, "ADE_train_00000001.png", why);
  };
  refused(png_of(16, 12, stripes(16, 12)), "12 x 16 pixels, its picture");
  refused(png_of(12, 16, stripes(12, 16)), "16 x 12 pixels, its picture");
  refused(png_of(16, 16, stripes(16, 16), 8, 3), "with a palette");
  refused(png_of(16, 16, stripes(16, 32), 16), "16 bits");
  refused(png_of(16, 16, stripes(16, 48), 8, 2), "in colours");
  refused(png_of(16, 16, std::vector<uint8_t>(256, 151)), "class 151");
  refused({}, "no PNG");
  refused(random_bytes(300, 4), "no PNG");
  std::vector<uint8_t> cut = png_of(16, 16, stripes(16, 16));
  cut.resize(cut.size() - 20);
  refused(cut, "cut short");
  fs::remove(path);
  check_refused(read, "ADE_train_00000001.png");
  put(folder / "images" / "training" / "ADE_train_00000001.jpg", std::string("\xFF\xD8\xFF no JPEG"));
  put(path, png_of(16, 16, stripes(16, 16)));
  check_refused(read, "ADE_train_00000001.jpg", "header");
}

TEST_CASE("ade20k: a check of the data set reads the annotations") {
  const TemporaryFolder folder;
  put_all(folder.path());
  const auto unreadable = [&] {
    const DatasetCheck check = check_dataset(open_ade20k(folder.path(), {.image_size = 16}), nullptr);
    for (const Finding& finding : check.findings)
      if (finding.kind == "unreadable") return finding.examples;
    return std::vector<std::string>();
  };
  CHECK(unreadable().empty());
  put(folder / "annotations" / "training" / "ADE_train_00000002.png", png_of(24, 40, stripes(24, 40)));
  REQUIRE(unreadable().size() == 1);
  CHECK(unreadable()[0].find("an annotation of 40 x 24 pixels") != std::string::npos);
}

}  // namespace tessera
