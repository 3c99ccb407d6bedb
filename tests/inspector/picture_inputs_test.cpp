#include "apps/inspector/picture_inputs.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/presets.h"
#include "tests/error_of.h"
#include "tests/inspector/coloured.h"

using namespace tessera;

namespace {

// The preset with fewer blocks, which have all that its blocks have.
Json shallow(Json config) {
  Json& network = config.contains("backbone") ? config["backbone"] : config;
  if (!network.contains("depth") || config["arch"] == "resnet") return config;
  const bool is_backbone = config.contains("backbone");
  Json& depth = network["depth"];
  if (depth.is_array())
    for (Json& stage : depth) stage = 1;
  else
    depth = is_backbone ? 4 : 2;
  if (network.value("sp_layers", 0) > 0) network["sp_layers"] = is_backbone ? 3 : 1;
  if (is_backbone && !depth.is_array()) config["decoder"]["out_blocks"] = {0, 1, 2, 3};
  return config;
}

// The smallest of the usual sizes that the preset can cut.
Json smallest(const std::string& name) {
  for (const int64_t size : {16, 32, 64}) try {
      const Json config = shallow(preset(name, size, 3));
      cost_of(config);
      return config;
    } catch (const Error&) {
    }
  FAIL(name, " at no size");
  return {};
}

PassInputs inputs(const Json& config, const Question& question, DType dtype = DType::f32) {
  const Model model = build(config, {.seed = 3, .dtype = dtype});
  return inputs_of_picture(model, {.image = coloured(model.image_size())}, {imagenet_normalisation},
                           question);
}

double training_loss(const PassInputs& pass) {
  Pass state{.random = Random(0), .drop = false};
  return pass.model.training_loss(pass.inputs, {}, state).loss.item();
}

}  // namespace

TEST_CASE("inputs_of_picture: every preset goes forward and backward for a picture") {
  for (const std::string& name : preset_names()) {
    CAPTURE(name);
    const Json config = smallest(name);
    if (config["in_channels"] == 4) {
      CHECK(error_of([&] { inputs(config, {}); }).find("a picture has 3") != std::string::npos);
      continue;
    }
    const PassInputs pass = inputs(config, {.target = 1});
    CHECK(pass.asks.find("class 1") != std::string::npos);
    const InspectedPass seen = inspect_pass(pass);
    CHECK(std::abs(seen.loss - training_loss(pass)) <= 2e-4 * std::abs(seen.loss));
    CHECK(seen.record.value("input").gradient.defined());
    CHECK(seen.record.value("loss").value.item() == seen.loss);
    int64_t without = 0;
    for (const Parameter& p : pass.model.parameters)
      if (p.trainable && !seen.record.value(p.name).gradient.defined()) ++without;
    CHECK(without == 0);
  }
}

TEST_CASE("inputs_of_picture: a segmenter's pixels ask for one class, their own, or the likeliest") {
  const Json config = shallow(preset("lvvit-s-seg", 32, 3));
  const Model model = build(config, {.seed = 3});
  KnownPicture picture{.image = coloured(32)};
  const auto target = [&](const Question& question) {
    return inputs_of_picture(model, picture, {imagenet_normalisation}, question).inputs.at("target");
  };
  CHECK(target({.target = 2}).shape() == Shape{1, 32, 32});
  CHECK(target({.target = 2}).integers() == std::vector<int64_t>(32 * 32, 2));
  Pass state;
  const PassInputs own = inputs_of_picture(model, picture, {imagenet_normalisation}, {});
  const std::vector<double> logits = model.logits(own.inputs.at("input"), state).values();
  const std::vector<int64_t> likeliest = own.inputs.at("target").integers();
  for (size_t i = 0; i < 32 * 32; ++i)
    for (size_t k = 0; k < 3; ++k)
      CHECK(logits[k * 1024 + i] <= logits[static_cast<size_t>(likeliest[i]) * 1024 + i]);
  picture.mask.emplace(32, 32);
  for (size_t i = 0; i < 32 * 32; ++i) picture.mask->pixels[3 * i] = static_cast<uint8_t>(i % 4);
  const std::vector<int64_t> masked = target({}).integers();
  for (size_t i = 0; i < 32 * 32; ++i)
    CHECK(masked[i] == (i % 4 == 0 ? 255 : static_cast<int64_t>(i % 4) - 1));
  picture.mask->pixels[0] = 4;
  CHECK(error_of([&] { target({}); }).find("class 3; the model has 0 to 2") != std::string::npos);
}

TEST_CASE("inputs_of_picture: a diffusion model is told time, label and noise") {
  const Json config = shallow(preset("dit-xt", 16, 3));
  const PassInputs pass = inputs(config, {.target = 2, .time = 700, .seed = 4});
  CHECK(pass.inputs.at("t").integers() == std::vector<int64_t>{700});
  CHECK(pass.inputs.at("y").integers() == std::vector<int64_t>{2});
  CHECK(pass.inputs.at("noise").values() == inputs(config, {.seed = 4}).inputs.at("noise").values());
  CHECK(pass.inputs.at("noise").values() != inputs(config, {.seed = 5}).inputs.at("noise").values());
  CHECK(inputs(config, {}).inputs.at("t").integers() == std::vector<int64_t>{500});
  CHECK(pass.asks == "the noise in the picture at time 700 of 1000, told class 2");
  // A fresh DiT answers 0, so the loss is the noise's mean square.
  double sum = 0;
  for (const double x : pass.inputs.at("noise").values()) sum += x * x;
  const InspectedPass seen = inspect_pass(pass);
  CHECK(std::abs(seen.loss - sum / (3 * 16 * 16)) < 1e-5);
  CHECK(seen.record.value("noise").kind == PassRecord::Kind::constant);
  CHECK(error_of([&] { inputs(config, {.time = 1000}); }).find("times 0 to 999") != std::string::npos);
  CHECK(error_of([&] { inputs(config, {.target = 3}); }).find("class 3; the model has 0 to 2") !=
        std::string::npos);
  CHECK(error_of([&] { inputs(preset("vit", 16, 3), {.time = 1}); }).find("diffusion") != std::string::npos);
}
