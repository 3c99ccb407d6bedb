#include "models/resnet.h"

#include <doctest/doctest.h>

#include <cmath>

#include "models/presets.h"
#include "tests/models/training.h"

using namespace tessera;

namespace {

Json small() {
  return {{"arch", "resnet"}, {"image_size", 9}, {"num_classes", 4}, {"depth", 8}, {"width", 6}};
}

}  // namespace

TEST_CASE("resnet: the shortcut takes every second pixel, zeros around the channels") {
  Parameters parameters;
  const ResNet::Block block(Scope(parameters, 0), 1, 3, 2);
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 3, 3, 1});
  CHECK(block.shortcut(x).shape() == Shape{1, 2, 2, 3});
  CHECK(block.shortcut(x).values() == std::vector<double>{0, 1, 0, 0, 3, 0, 0, 7, 0, 0, 9, 0});
}

TEST_CASE("resnet: an odd image, its names, and a falling loss") {
  const Model model = build(small());
  CHECK(model.parameters.find("layer2.0.conv1.weight")->shape() == Shape{12, 6, 3, 3});
  CHECK(model.parameters.find("layer3.0.bn2.running_var")->shape() == Shape{24});
  CHECK(model.parameters.find("fc.weight")->shape() == Shape{4, 24});
  const TensorMap batch{{"input", random_images({4, 3, 9, 9})},
                        {"target", Tensor::from(std::vector<int64_t>{0, 1, 2, 3}, {4})}};
  const std::vector<double> loss = losses(model, batch, 10, 1e-2);
  CHECK(loss.back() < 0.5 * loss.front());
}

TEST_CASE("resnet: refusals") {
  Json config = small();
  config["depth"] = 9;
  CHECK(refusal(config) == "resnet: depth is 9; 6 n + 2 layers are wanted: 8, 14, 20, ...");
  config = small();
  config["width"] = 5;
  CHECK(refusal(config).starts_with("resnet: width is 5; an even one"));
}

TEST_CASE("resnet: presets have the expected parameters and multiply-accumulates") {
  const Cost shallow = cost_of(preset("resnet56", 64, 200)), deep = cost_of(preset("resnet110", 64, 200));
  CHECK(std::round(static_cast<double>(shallow.parameters) / 1e3) == 865);
  CHECK(std::round(static_cast<double>(shallow.macs) / 1e4) == 50621);
  CHECK(std::round(static_cast<double>(deep.parameters) / 1e3) == 1740);
  CHECK(std::round(static_cast<double>(deep.macs) / 1e4) == 101995);
}
