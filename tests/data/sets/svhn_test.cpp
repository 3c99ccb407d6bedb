#include "data/sets/svhn.h"

#include "data/registry.h"
#include "tests/data/files.h"
#include "tests/data/sets/mat_files.h"

namespace tessera {

namespace {

using namespace mat_files;

std::string svhn_file(int32_t count, const std::string& y) {
  return header() + compressed(images(count).bytes()) + compressed(labels(y).bytes());
}

}  // namespace

TEST_CASE("svhn: pixels are turned, label 10 is digit 0") {
  const TemporaryFolder folder;
  put(folder / "train_32x32.mat", svhn_file(3, "\x0a\x01\x09"));
  put(folder / "test_32x32.mat",  // uncompressed, labels first, as doubles
      header() + Array{"y", 6, {2, 1}, 9, std::string("\0\0\0\0\0\0\x24\x40\0\0\0\0\0\0\0\x40", 16)}.bytes() +
          images(2).bytes());
  const Dataset data = open_dataset("svhn", folder.path());
  CHECK(data.train->size() == 3);
  CHECK(data.validation->size() == 2);
  CHECK(data.train->label(0) == 0);
  CHECK(data.train->label(1) == 1);
  CHECK(data.train->label(2) == 9);
  CHECK(data.validation->label(0) == 0);
  CHECK(data.validation->label(1) == 2);
  CHECK(data.notes.size() == 2);
  const Image image = picture(*data.train, 2);
  for (const auto& [row, column] : {std::pair{0, 0}, std::pair{5, 17}, std::pair{31, 2}})
    for (int channel = 0; channel < 3; ++channel)
      CHECK(image.at(row, column)[channel] == pixel(row, column, channel, 2));
}

TEST_CASE("svhn: one image, whose last size MATLAB leaves out") {
  const TemporaryFolder folder;
  Array one = images(1);
  one.sizes.pop_back();
  for (const char* name : {"train_32x32.mat", "test_32x32.mat"})
    put(folder / name, header() + one.bytes() + labels("\x02").bytes());
  const Dataset data = open_dataset("svhn", folder.path());
  CHECK((data.train->size() == 1 && data.train->label(0) == 2));
}

TEST_CASE("svhn: what it refuses") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& train, const std::string& why) {
    put(folder / "train_32x32.mat", train);
    put(folder / "test_32x32.mat", svhn_file(1, "\x01"));
    check_refused([&] { open_dataset("svhn", folder.path()); }, "svhn", "train_32x32.mat", why);
  };
  refused(header() + labels("\x01").bytes(), "no array X");
  refused(header() + images(2).bytes(), "no array y");
  refused(header() + images(2).bytes() + labels("\x01").bytes(), "1 labels for 2 images");
  Array flat = images(2);
  flat.sizes = {32, 96, 2};
  refused(header() + flat.bytes() + labels("\x01\x02").bytes(), "32 x 32 x 3");
  refused(svhn_file(2, std::string("\x01\x00", 2)), "label 1 is 0");
  refused(svhn_file(2, "\x0b\x01"), "label 0 is 11");
  const std::string half("\0\0\0\0\0\0\xf8\x3f", 8);  // 1.5
  refused(header() + images(1).bytes() + Array{"y", 6, {1, 1}, 9, half}.bytes(), "label 0 is 1.5");
  flat.sizes = {32, 32, 3, 2};
  flat.array_class = 8;
  refused(header() + flat.bytes() + labels("\x01\x02").bytes(), "32 x 32 x 3");
  put(folder / "train_32x32.mat", svhn_file(1, "\x01"));
  std::filesystem::remove(folder / "test_32x32.mat");
  check_refused([&] { open_dataset("svhn", folder.path()); }, "test_32x32.mat is missing");
  check_refused([] { open_dataset("svhn", "/nonexistent"); }, "svhn", "train_32x32.mat");
  check_refused([&] { open_dataset("svhn", folder.path(), {.image_size = 64}); }, "32 x 32");
}

}  // namespace tessera
