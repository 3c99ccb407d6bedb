#include "data/sets/svhn.h"

#include <algorithm>
#include <array>

#include "data/formats/mat.h"
#include "data/sets/folder.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int side = 32;
constexpr int64_t area = int64_t{side} * side;

const MatVariable& variable(const std::vector<MatVariable>& all, const char* name, const fs::path& path) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& v) { return v.name == name; });
  check(found != all.end(), "svhn: ", path.string(), " has no array ", name, "; X and y were expected");
  return *found;
}

// The digit of each image.
std::vector<int32_t> read_labels(const fs::path& path, const MatVariable& y, int64_t count) {
  check(y.elements() == count, "svhn: ", path.string(), " has ", y.elements(), " labels for ", count,
        " images");
  std::vector<int32_t> labels;
  for (const double value : read_mat_numbers(path, y)) {
    const bool known = value >= 1 && value <= 10 && value == static_cast<int>(value);
    check(known, "svhn: ", path.string(), ": label ", labels.size(), " is ", value,
          "; they go from 1 to 10, which is digit 0");
    labels.push_back(static_cast<int32_t>(value) % 10);
  }
  return labels;
}

// [3, columns, rows] to [rows, columns, 3], in place.
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
  const std::vector<MatVariable> variables = list_mat(path);
  const MatVariable &x = variable(variables, "X", path), &y = variable(variables, "y", path);
  std::vector<int64_t> sizes = x.sizes;
  if (sizes.size() == 3) sizes.push_back(1);  // MATLAB leaves a last size of 1 out
  const int64_t count = sizes.back();
  check(x.array_class == mat_uint8 && sizes == std::vector<int64_t>{side, side, 3, count},
        "svhn: ", path.string(), ": X is no array of bytes, 32 x 32 x 3 x images");
  std::vector<int32_t> labels = read_labels(path, y, count);
  std::vector<uint8_t> pixels = read_mat_bytes(path, x);
  for (int64_t i = 0; i < count; ++i) transpose(pixels.data() + i * 3 * area);
  if (count != published)
    dataset.notes.push_back(path.filename().string() + " holds " + std::to_string(count) +
                            " images; the published one " + std::to_string(published));
  return std::make_shared<StoredSplit>(side, side, 3, std::move(pixels), std::move(labels), path.string());
}

}  // namespace

Dataset open_svhn(const fs::path& dir) {
  const fs::path root = find_root("svhn", dir, "svhn", "train_32x32.mat",
                                  "give the folder with train_32x32.mat and test_32x32.mat");
  Dataset dataset;
  dataset.name = "svhn";
  dataset.class_names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  dataset.image_shape = {3, side, side};
  dataset.normalisation = {{0.4377f, 0.4438f, 0.4728f}, {0.1980f, 0.2010f, 0.1970f}};
  dataset.train = read_split(root / "train_32x32.mat", 73257, dataset);
  dataset.validation = read_split(root / "test_32x32.mat", 26032, dataset);
  return dataset;
}

}  // namespace tessera
