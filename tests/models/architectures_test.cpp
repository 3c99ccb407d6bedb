#include "models/architectures.h"

#include <doctest/doctest.h>

#include <set>

#include "models/presets.h"
#include "tests/error_of.h"

using namespace tessera;

TEST_CASE("every preset is a config of the architecture that lists it, and has a name of its own") {
  std::set<std::string> architecture_names, names;
  for (const Architecture& row : architectures()) {
    CAPTURE(row.name);
    CHECK(architecture_names.insert(row.name).second);
    CHECK(find_architecture(row.name) == &row);
    CHECK(!row.presets.empty());
    for (const std::string& name : row.presets) {
      CAPTURE(name);
      CHECK(names.insert(name).second);
      const Json config = preset(name, 64, 10);
      CHECK(config.at("arch") == row.name);
      CHECK(config.at("image_size") == 64);
      CHECK(config.at("num_classes") == 10);
    }
  }
  CHECK(find_architecture("vitt") == nullptr);
}

TEST_CASE("a model has its architecture's task, and samples only if that is diffusion") {
  CHECK(build(preset("sl-vit", 32, 10)).task == Task::classify);
  CHECK(!build(preset("sl-vit", 32, 10)).sample);
  CHECK(build(preset("lvvit-s-seg", 64, 4)).task == Task::segment);
  const Model dit = build(preset("dit-xt", 32, 10));
  CHECK(dit.task == Task::diffuse);
  CHECK(dit.sample);
}

TEST_CASE("presets: an unknown name and a size that gives no whole patches are refused") {
  CHECK(error_of([] { preset("sl-vitt", 32, 10); }) ==
        "models: no preset 'sl-vitt'; did you mean 'sl-vit'?; `tessera models` lists them all");
  CHECK(error_of([] { preset("vit", 30, 10); }) ==
        "vit: an image of 30 pixels is not cut into 8 x 8 patches; the size must be a multiple of 8");
}
