#include "data/registry.h"

#include <algorithm>

#include "data/sets/ade20k.h"
#include "data/sets/cifar.h"
#include "data/sets/idx.h"
#include "data/sets/image_folder.h"
#include "data/sets/imagenet.h"
#include "data/sets/shapes.h"
#include "data/sets/svhn.h"
#include "data/sets/tiny_imagenet.h"
#include "data/subset.h"
#include "engine/core/error.h"

namespace tessera {

std::vector<std::string> dataset_names() {
  return {"cifar10", "cifar100", "svhn",          "tiny-imagenet", "imagenet",   "imagenet-100",
          "folder",  "mnist",    "fashion-mnist", "shapes",        "shapes-seg", "ade20k"};
}

bool needs_folder(const std::string& name) { return !name.starts_with("shapes"); }

namespace {

Dataset open_whole(const std::string& name, const std::filesystem::path& dir, const DatasetOptions& options) {
  const std::vector<std::string> known = dataset_names();
  check(std::find(known.begin(), known.end(), name) != known.end(), "data set '", name, "' is not known",
        did_you_mean(name, known));
  check(!options.coarse_labels || name == "cifar100", name, ": has no coarse labels; cifar100 has");
  check(options.image_size >= 0 && options.image_size <= 4096, name, ": image size ", options.image_size,
        "; 1 to 4096 pixels, or 0 for the data set's own");
  check(!needs_folder(name) || !dir.empty(), name, ": no data folder was given; --data DIR names it");
  if (name.starts_with("cifar") || name == "svhn") {
    check(options.image_size == 0 || options.image_size == 32, name, ": images of ", options.image_size,
          " pixels a side; these are 32 x 32 as stored");
    if (name == "svhn") return open_svhn(dir);
    return open_cifar(dir, name == "cifar10" ? cifar10_format() : cifar100_format(options.coarse_labels));
  }
  if (name.starts_with("imagenet")) return open_imagenet(dir, options, name == "imagenet" ? 0 : 100);
  if (name == "tiny-imagenet") return open_tiny_imagenet(dir, options);
  if (name == "ade20k") return open_ade20k(dir, options);
  if (name == "folder") return open_image_folder(dir, options);
  if (!needs_folder(name)) {
    ShapesOptions shapes;
    shapes.seed = options.seed;
    if (options.image_size > 0) shapes.image_size = options.image_size;
    if (options.train_images > 0) shapes.train = options.train_images;
    if (options.validation_images > 0) shapes.validation = options.validation_images;
    return name == "shapes" ? make_shapes(shapes) : make_shape_scenes(shapes);
  }
  return open_idx(name, dir, options);
}

}  // namespace

Dataset open_dataset(const std::string& name, const std::filesystem::path& dir,
                     const DatasetOptions& options) {
  Dataset dataset = open_whole(name, dir, options);
  dataset.train = subset(dataset.train, options.train_images, options.seed);
  dataset.validation = subset(dataset.validation, options.validation_images, options.seed);
  return dataset;
}

}  // namespace tessera
