#include "data/registry.h"

#include <set>

#include "tests/data/files.h"

namespace tessera {

TEST_CASE("registry: every row is complete, every published file has its sum") {
  std::set<std::string> names;
  for (const DatasetEntry& entry : datasets()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    CHECK((entry.open != nullptr));
    CHECK(&find_dataset(entry.name) == &entry);
    CHECK(!entry.sizes.reason.empty());
    const bool own_images =
        entry.name == "folder" || entry.name == "tiles" || entry.has_latents || !entry.needs_folder;
    REQUIRE(entry.published.has_value() != own_images);
    if (own_images) continue;
    const PublishedSet& set = *entry.published;
    CHECK(!set.markers.empty());
    CHECK(set.files.empty() != set.how_to_get.empty());
    for (const PublishedFile& file : set.files) {
      CHECK(file.md5.size() == 32);
      CHECK(file.sha256.size() == (entry.name == "ade20k" ? 0 : 64));
    }
    for (const auto& [file, sum] : set.sums) CHECK(sum.size() == 32);
  }
}

TEST_CASE("registry: an unknown name is answered with a similar one") {
  check_refused([] { open_dataset("cifar-10", "."); }, "'cifar-10'", "did you mean 'cifar10'");
  check_refused([] { open_dataset("imagenet-22k", ""); }, "'imagenet-22k'");
}

TEST_CASE("registry: options that a data set does not have are refused with the reason") {
  const TemporaryFolder folder;
  for (const DatasetEntry& entry : datasets()) {
    CAPTURE(entry.name);
    const auto open = [&](const DatasetOptions& options) {
      return [&, options] { open_dataset(entry.name, folder.path(), options); };
    };
    check_refused(open({.image_size = -1}), entry.name, "image size -1", entry.sizes.reason);
    check_refused(open({.image_size = 5000}), entry.name, "image size 5000", entry.sizes.reason);
    if (entry.coarse_classes == 0)
      check_refused(open({.coarse_labels = true}), entry.name, "no coarse labels", "cifar100");
    if (!entry.takes_validation_fraction)
      check_refused(open({.validation_fraction = 0.5}), entry.name, "validation_fraction", "'folder'");
    if (!entry.takes_test_fit)
      check_refused(open({.test_fit = {0.9, false}}), entry.name, "test_crop", "imagenet");
    if (!entry.has_latents) check_refused(open({.latent_scale = 2}), entry.name, "latent_scale", "'latents'");
    if (entry.needs_folder)
      check_refused([&] { open_dataset(entry.name, ""); }, entry.name, "no data folder", "--data");
  }
  check_refused([&] { open_dataset("cifar10", folder.path(), {.image_size = 64}); }, "64", "32 x 32");
  check_refused([&] { open_dataset("mnist", folder.path(), {.image_size = 64}); }, "64", "28", "32");
  check_refused([&] { open_dataset("shapes", "", {.image_size = 8}); }, "16 to 512");
}

TEST_CASE("registry: a data set that is drawn has masks where its row says so") {
  for (const DatasetEntry& entry : datasets()) {
    if (entry.needs_folder) continue;
    CAPTURE(entry.name);
    const Dataset dataset =
        open_dataset(entry.name, "", {.image_size = 16, .train_images = 10, .validation_images = 10});
    CHECK(dataset.name == entry.name);
    CHECK(dataset.train->has_masks() == entry.has_masks);
    for (const int size : {0, 16}) {
      CAPTURE(size);
      const DatasetOptions options{.image_size = size, .train_images = 10, .validation_images = 10};
      const Dataset opened = open_dataset(entry.name, "", options),
                    known = unopened_dataset(entry.name, options);
      CHECK(known.image_shape == opened.image_shape);
      CHECK(known.classes() == opened.classes());
    }
  }
}

TEST_CASE("registry: what is known of a data set without its files") {
  const auto known = [](const std::string& name, const DatasetOptions& options = {}) {
    const Dataset dataset = unopened_dataset(name, options);
    return std::pair(dataset.image_shape, dataset.classes());
  };
  CHECK(known("cifar100") == std::pair(Shape{3, 32, 32}, int64_t{100}));
  CHECK(known("cifar100", {.coarse_labels = true}).second == 20);
  CHECK(known("svhn") == std::pair(Shape{3, 32, 32}, int64_t{10}));
  CHECK(known("tiny-imagenet") == std::pair(Shape{3, 64, 64}, int64_t{200}));
  CHECK(known("imagenet-100", {.image_size = 160}) == std::pair(Shape{3, 160, 160}, int64_t{100}));
  CHECK(known("ade20k") == std::pair(Shape{3, 512, 512}, int64_t{150}));
  CHECK(known("latents") == std::pair(Shape{4, 32, 32}, int64_t{1000}));
  check_refused([] { unopened_dataset("folder"); }, "folder", "only its files say");
  check_refused([] { unopened_dataset("cifar10", {.image_size = 64}); }, "64", "32 x 32");
}

}  // namespace tessera
