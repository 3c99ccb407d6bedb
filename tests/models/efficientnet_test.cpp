#include "models/efficientnet.h"

#include <doctest/doctest.h>

#include <cmath>

#include "models/presets.h"
#include "tests/models/training.h"

using namespace tessera;

namespace {

Json stage(int64_t width, int64_t depth, int64_t kernel, int64_t stride, int64_t expand) {
  return {{"width", width}, {"depth", depth}, {"kernel", kernel}, {"stride", stride}, {"expand", expand}};
}

Json small() {
  return {{"arch", "efficientnet"}, {"image_size", 9},
          {"num_classes", 4},       {"stem_width", 6},
          {"head_width", 20},       {"dropout", 0.2},
          {"drop_path", 0.4},       {"stages", {stage(6, 2, 3, 1, 1), stage(8, 2, 5, 2, 3)}}};
}

}  // namespace

TEST_CASE("efficientnet: names with and without expansion, rates, and a falling loss") {
  const Model model = build(small());
  const auto shape = [&](const char* name) { return model.parameters.find(name)->shape(); };
  CHECK(shape("blocks.0.1.conv_pw.weight") == Shape{6, 6, 1, 1});
  CHECK(shape("blocks.0.1.se.conv_reduce.weight") == Shape{1, 6, 1, 1});
  CHECK(shape("blocks.1.0.conv_pw.weight") == Shape{18, 6, 1, 1});
  CHECK(shape("blocks.1.0.conv_dw.weight") == Shape{18, 1, 5, 5});
  CHECK(shape("blocks.1.1.conv_pwl.weight") == Shape{8, 24, 1, 1});
  CHECK(shape("blocks.1.1.bn3.weight") == Shape{8});
  CHECK(shape("conv_head.weight") == Shape{20, 8, 1, 1});
  Parameters parameters;
  const EfficientNet net(small(), Scope(parameters, 0));
  CHECK(net.blocks[0].drop_path == 0);
  CHECK(net.blocks[3].drop_path == doctest::Approx(0.3));  // from 0 to the rate of a block past the last
  CHECK_FALSE(net.blocks[2].residual);
  CHECK(net.blocks[3].residual);
  const TensorMap batch{{"input", random_images({4, 3, 9, 9})},
                        {"target", Tensor::from(std::vector<int64_t>{0, 1, 2, 3}, {4})}};
  const std::vector<double> loss = losses(model, batch, 15, 1e-2);
  CHECK(loss.back() < 0.5 * loss.front());
}

TEST_CASE("efficientnet: dropout and drop path draw from the pass in training alone") {
  const Model model = build(small());
  const Tensor images = random_images({2, 3, 9, 9});
  const auto logits = [&](bool training, uint64_t seed) {
    Pass pass{training, Random(seed)};
    return model.logits(images, pass).values();
  };
  CHECK(logits(false, 1) == logits(false, 2));
  CHECK(logits(true, 1) != logits(true, 2));
}

TEST_CASE("efficientnet: refusals") {
  Json config = small();
  config["stages"][1]["kernel"] = 4;
  CHECK(refusal(config).find("kernel is 4; only an odd one") != std::string::npos);
  config["stages"] = Json::array();
  CHECK(refusal(config).find("a stage at least") != std::string::npos);
  config = small();
  config["dropout"] = 1.0;
  CHECK(refusal(config).find("dropout is 1") != std::string::npos);
}

TEST_CASE("efficientnet: the preset has the expected parameters and multiply-accumulates") {
  const Cost cost = cost_of(preset("efficientnet-b0", 64, 200));
  CHECK(std::round(static_cast<double>(cost.parameters) / 1e3) == 3660);
  CHECK(std::round(static_cast<double>(cost.macs) / 1e4) == 12385);
}
