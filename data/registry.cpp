#include "data/registry.h"

#include <algorithm>

#include "data/sets/ade20k.h"
#include "data/sets/cifar.h"
#include "data/sets/image_folder.h"
#include "data/sets/imagenet.h"
#include "data/sets/latents.h"
#include "data/sets/mnist.h"
#include "data/sets/shapes.h"
#include "data/sets/svhn.h"
#include "data/sets/tiles.h"
#include "data/sets/tiny_imagenet.h"
#include "data/subset.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"

namespace tessera {

const std::vector<DatasetEntry>& datasets() {
  static const std::vector<DatasetEntry> entries{
      cifar10_entry(),        //
      cifar100_entry(),       //
      svhn_entry(),           //
      tiny_imagenet_entry(),  //
      imagenet_entry(),       //
      imagenet_100_entry(),   //
      image_folder_entry(),   //
      tiles_entry(),          //
      mnist_entry(),          //
      fashion_mnist_entry(),  //
      shapes_entry(),         //
      shape_scenes_entry(),   //
      ade20k_entry(),         //
      latents_entry(),
  };
  return entries;
}

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const DatasetEntry& entry : datasets()) names.push_back(entry.name);
  return names;
}

const DatasetEntry& find_dataset(const std::string& name) {
  const auto& all = datasets();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.name == name; });
  check(found != all.end(), "data set '", name, "' is not known", did_you_mean(name, dataset_names()));
  return *found;
}

bool holds_latents(const std::string& name) {
  const auto& all = datasets();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& entry) { return entry.name == name && entry.has_latents; });
}

namespace {

template <class Has> std::string sets_that(Has has) {
  std::string names;
  for (const DatasetEntry& entry : datasets())
    if (has(entry)) names += (names.empty() ? "" : ", ") + entry.name;
  return names;
}

bool accepts(const ImageSizes& sizes, int size) {
  if (size == 0) return true;
  if (!sizes.only.empty()) return std::find(sizes.only.begin(), sizes.only.end(), size) != sizes.only.end();
  return size >= sizes.least && size <= sizes.most;
}

// A checkpoint keeps the names as JSON, which is UTF-8: without them it could not be evaluated.
void check_class_names(const Dataset& dataset) {
  for (const std::string& name : dataset.class_names)
    check(is_utf8(name), dataset.name, ": the class name '", printable(name),
          "' is not UTF-8; give its folder another name");
}

}  // namespace

void check_options(const DatasetEntry& entry, const DatasetOptions& options) {
  check(!options.coarse_labels || entry.coarse_classes > 0, entry.name,
        ": has no coarse labels; available for: ",
        sets_that([](const DatasetEntry& e) { return e.coarse_classes > 0; }));
  check(
      entry.takes_validation_fraction || options.validation_fraction == DatasetOptions{}.validation_fraction,
      entry.name, ": has a validation split of its own; validation_fraction is for 'folder'");
  check(entry.takes_test_fit || options.test_fit == SquareFit{}, entry.name,
        ": its validation pictures are used whole; test_crop and test_filter are for ",
        sets_that([](const DatasetEntry& e) { return e.takes_test_fit; }));
  check(entry.has_latents || options.latent_scale == usual_latent_scale, entry.name,
        ": has pictures, which latent_scale does not scale; it is for 'latents'");
  check(accepts(entry.sizes, options.image_size), entry.name, ": image size ", options.image_size, "; ",
        entry.sizes.reason);
}

void check_folder(const std::string& name, const std::filesystem::path& dir) {
  check(dir.empty() || find_dataset(name).needs_folder, name,
        ": its pictures are drawn and lie in no folder; leave out --data (data.dir) ", dir.string());
}

Dataset unopened_dataset(const std::string& name, const DatasetOptions& options) {
  const DatasetEntry& entry = find_dataset(name);
  check_options(entry, options);
  const PublishedSet published = entry.published.value_or(PublishedSet{});
  const int64_t usual = entry.side > 0 ? entry.side : published.side;
  const int64_t side = options.image_size > 0 ? options.image_size : usual;
  const int64_t all = entry.classes > 0 ? entry.classes : published.classes;
  const int64_t classes = options.coarse_labels ? entry.coarse_classes : all;
  check(side > 0 && classes > 0, name, ": only its files say what they hold; give --data DIR");
  Dataset dataset;
  dataset.name = name;
  dataset.image_shape = {entry.has_latents ? 4 : 3, side, side};
  dataset.latent_scale = entry.has_latents ? options.latent_scale : 0;
  dataset.class_names.resize(static_cast<size_t>(classes));
  return dataset;
}

Dataset open_dataset(const std::string& name, const std::filesystem::path& dir,
                     const DatasetOptions& options) {
  const DatasetEntry& entry = find_dataset(name);
  check(!entry.needs_folder || !dir.empty(), name, ": no data folder was given; --data DIR names it");
  check_options(entry, options);
  Dataset dataset = entry.open(dir, options);
  check_class_names(dataset);
  dataset.train = subset(dataset.train, options.train_images, options.seed);
  dataset.validation = subset(dataset.validation, options.validation_images, options.seed);
  return dataset;
}

}  // namespace tessera
