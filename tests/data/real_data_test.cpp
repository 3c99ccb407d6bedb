// Checks on the published files, if the environment variable TESSERA_DATA names the folder with their
// unpacked archives.

#include <cstdlib>

#include "data/formats/folder.h"
#include "data/registry.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

// The folder of TESSERA_DATA if it contains `name`; otherwise reports that the test is skipped.
std::filesystem::path data_with(const std::string& name) {
  const char* root = std::getenv("TESSERA_DATA");
  if (root != nullptr && is_folder(std::filesystem::path(root) / name)) return root;
  MESSAGE("skipped: TESSERA_DATA is not set to a folder that holds " << name);
  return {};
}

}  // namespace

TEST_CASE("real data: CIFAR-10, binary") {
  const auto root = data_with("cifar-10-batches-bin");
  if (root.empty()) return;
  const Dataset dataset = open_dataset("cifar10", root);
  CHECK(class_counts(*dataset.train, 10) == std::vector<int64_t>(10, 5000));
  CHECK(class_counts(*dataset.validation, 10) == std::vector<int64_t>(10, 1000));
  CHECK(dataset.class_names[0] == "airplane");
}

TEST_CASE("real data: Tiny-ImageNet") {
  const auto root = data_with("tiny-imagenet-200");
  if (root.empty()) return;
  const Dataset dataset = open_dataset("tiny-imagenet", root);
  CHECK(dataset.classes() == 200);
  CHECK(dataset.validation->size() == 10000);
  CHECK(class_counts(*dataset.validation, 200) == std::vector<int64_t>(200, 50));
  CHECK(dataset.class_names[0] == "goldfish, Carassius auratus");
  CHECK(dataset.validation->source(0).ends_with("val_0.JPEG"));
  CHECK(dataset.class_names[static_cast<size_t>(dataset.validation->label(0))].find("memorial") ==
        std::string::npos);
  const Image image = picture(*dataset.train, dataset.train->size() / 2);
  CHECK(image.height == 64);
}

}  // namespace tessera
