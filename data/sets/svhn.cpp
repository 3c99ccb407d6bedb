#include "data/sets/svhn.h"

#include <algorithm>
#include <array>

#include "data/formats/folder.h"
#include "data/formats/mat.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int side = 32;
constexpr int64_t area = int64_t{side} * side;
constexpr int64_t train_images = 73257, test_images = 26032;

MatArray& find_array(std::vector<MatArray>& all, const char* name, const fs::path& path) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& a) { return a.name == name; });
  check(found != all.end(), "svhn: ", path.string(), " has no array ", name, "; X and y were expected");
  return *found;
}

// The digit of each image.
std::vector<int32_t> digits(const fs::path& path, const MatArray& y, int64_t count) {
  check(y.elements() == count, "svhn: ", path.string(), " has ", y.elements(), " labels for ", count,
        " images");
  std::vector<int32_t> labels;
  for (const double value : y.numbers()) {
    const bool known = value >= 1 && value <= 10 && value == static_cast<int>(value);
    check(known, "svhn: ", path.string(), ": label ", labels.size(), " is ", value,
          "; labels go from 1 to 10, and 10 is the digit 0");
    labels.push_back(static_cast<int32_t>(value) % 10);
  }
  return labels;
}

// The number of images in X, which must hold bytes of the right shape.
int64_t count_images(const fs::path& path, const MatArray& x) {
  std::vector<int64_t> sizes = x.sizes;
  if (sizes.size() == 3) sizes.push_back(1);  // MATLAB drops a last size of 1
  const int64_t count = sizes.back();
  check(x.is_bytes() && sizes == std::vector<int64_t>{side, side, 3, count}, "svhn: ", path.string(),
        ": X is no array of bytes, 32 x 32 x 3 x images");
  return count;
}

// Transposes one image in place, from [3, columns, rows] to [rows, columns, 3].
void transpose(uint8_t* image) {
  std::array<uint8_t, 3 * area> planes;
  std::copy_n(image, planes.size(), planes.begin());
  for (size_t row = 0; row < side; ++row)
    for (size_t column = 0; column < side; ++column)
      for (size_t channel = 0; channel < 3; ++channel)
        *image++ = planes[row + side * column + area * channel];
}

std::shared_ptr<const Split> read_split(const fs::path& path, int64_t published, Dataset& dataset) {
  check(is_file(path), "svhn: ", path.string(), " is missing");
  std::vector<MatArray> arrays = read_mat(path);
  MatArray &x = find_array(arrays, "X", path), &y = find_array(arrays, "y", path);
  const int64_t count = count_images(path, x);
  std::vector<int32_t> labels = digits(path, y, count);
  std::vector<uint8_t> pixels = std::move(x.data);
  for (int64_t i = 0; i < count; ++i) transpose(pixels.data() + i * 3 * area);
  if (count != published)
    dataset.notes.push_back(path.filename().string() + " holds " + std::to_string(count) +
                            " images; the published one " + std::to_string(published));
  return std::make_shared<StoredSplit>(side, side, 3, std::move(pixels), std::move(labels), path.string());
}

Dataset open_svhn(const fs::path& dir) {
  const fs::path root = find_root("svhn", dir, "svhn", "train_32x32.mat",
                                  "give the folder with train_32x32.mat and test_32x32.mat");
  Dataset dataset;
  dataset.name = "svhn";
  dataset.class_names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  dataset.image_shape = {3, side, side};
  dataset.normalisation = {{0.4377f, 0.4438f, 0.4728f}, {0.1980f, 0.2010f, 0.1970f}};
  dataset.train = read_split(root / "train_32x32.mat", train_images, dataset);
  dataset.validation = read_split(root / "test_32x32.mat", test_images, dataset);
  return dataset;
}

}  // namespace

DatasetEntry svhn_entry() {
  constexpr const char *train_sum = "e26dedcc434d2e4c54c9b2d4a06d8373",
                       *test_sum = "eb5a983be6a315427106f1b164d9cef3";
  const PublishedSet published{
      .files = {{"http://ufldl.stanford.edu/housenumbers/train_32x32.mat", 182040794, train_sum, false,
                 "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8"},
                {"http://ufldl.stanford.edu/housenumbers/test_32x32.mat", 64275384, test_sum, false,
                 "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b"}},
      .markers = {"train_32x32.mat", "test_32x32.mat"},
      .train = train_images,
      .validation = test_images,
      .classes = 10,
      .side = side,
      .sums = {{"train_32x32.mat", train_sum}, {"test_32x32.mat", test_sum}}};
  return {.name = "svhn",
          .open = [](const fs::path& dir, const DatasetOptions&) { return open_svhn(dir); },
          .sizes = {.only = {side}, .reason = "the images are 32 x 32 as stored"},
          .published = published};
}

}  // namespace tessera
