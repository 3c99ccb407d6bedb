#include "models/segment.h"

#include <doctest/doctest.h>

#include <cmath>

#include "models/presets.h"
#include "tests/models/training.h"

using namespace tessera;

namespace {

Json small() {
  return {
      {"arch", "segment"},
      {"image_size", 16},
      {"num_classes", 3},
      {"backbone",
       {{"arch", "lvvit"},
        {"image_size", 224},
        {"num_classes", 0},
        {"dim", 8},
        {"depth", 4},
        {"tokenizer", {{"kind", "conv_stem"}, {"patch_size", 8}, {"channels", 4}}},
        {"attention", {{"heads", 2}}}}},
      {"decoder", {{"kind", "upernet"}, {"out_blocks", {3, 0, 1, 2}}, {"top_channels", 9}, {"channels", 6}}},
      {"aux", {{"level", 1}, {"channels", 4}}}};
}

TensorMap labelled() {
  std::vector<int64_t> target;
  for (int64_t i = 0; i < 4 * 256; ++i) target.push_back(i % 7 == 0 ? 255 : (i / 64 + i / 8 % 2) % 3);
  return {{"input", random_images({4, 3, 16, 16})}, {"target", Tensor::from(target, {4, 16, 16})}};
}

}  // namespace

TEST_CASE("segment: logits of every pixel; the auxiliary head runs in training alone") {
  const Model model = build(small());
  Pass pass;
  CHECK(model.logits(random_images({2, 3, 16, 16}), pass).shape() == Shape{2, 3, 16, 16});
  const auto ran = [&](auto&& run) {
    bool aux = false;
    const Observer observer(
        [&](const ForwardEvent&) { aux = aux || ModuleScope::path().starts_with("aux"); });
    run();
    return aux;
  };
  CHECK_FALSE(ran([&] { model.logits(random_images({1, 3, 16, 16}), pass); }));
  CHECK(ran([&] { model.training_loss(labelled(), {}, pass); }));
  CHECK(ran([&] { model.forward_all(random_images({1, 3, 16, 16}), pass); }));
}

TEST_CASE("segment: the loss falls; the parts of a batch weigh by their images") {
  const Model model = build(small());
  const auto loss = [&](int64_t rows) {
    Pass pass{.training = true, .drop = false};
    return model.training_loss(labelled(), {.rows = rows}, pass).loss.item();
  };
  CHECK(loss(8) == doctest::Approx(loss(0) / 2));
  const std::vector<double> values = losses(model, labelled(), 30, 1e-2);
  CHECK(values.back() < 0.8 * values.front());
}

TEST_CASE("segment: dropout of channels draws from the pass") {
  const Model model = build(small());
  const auto loss = [&](uint64_t seed) {
    Pass pass{true, Random(seed)};
    return model.training_loss(labelled(), {}, pass).loss.item();
  };
  CHECK(loss(1) == loss(1));
  CHECK(loss(1) != loss(2));
}

TEST_CASE("segment: a transposed convolution paints each pixel's square") {
  Parameters parameters;
  const UpUnit up(Scope(parameters, 0), 1, 2);
  up.weight.copy_from(Tensor::from({1, 2, 3, 4}, {1, 1, 2, 2}));
  const Tensor x = Tensor::from({1, 10}, {1, 1, 2, 1});
  const std::vector<double> y = up(x, Pass{}).values();  // the norm divides by sqrt(1 + eps)
  const std::vector<double> expected{1, 2, 10, 20, 3, 4, 30, 40};
  for (size_t i = 0; i < 8; ++i) CHECK(y[i] == doctest::Approx(expected[i]).epsilon(1e-4));
}

TEST_CASE("segment: refusals") {
  const auto says = [](const char* object, const char* key, const Json& value, const std::string& part) {
    Json config = small();
    config[object][key] = value;
    check_refused(config, part);
  };
  says("backbone", "num_classes", 3, "the backbone has num_classes 0");
  says("backbone", "arch", "vit", "the backbone is 'vit'; wanted lvvit, rmt, sdt or swin");
  says("decoder", "kind", "unet", "upernet");
  says("decoder", "out_blocks", {0, 1, 2}, "four blocks");
  says("decoder", "out_blocks", {0, 1, 1, 2}, "four blocks");
  says("decoder", "out_blocks", {0, 1, 2, 4}, "names block 4, the backbone has 0 to 3");
  says("aux", "level", 3, "level");
  Json config = small();
  config["num_classes"] = 256;  // 255 would be a class
  CHECK(refusal(config).find("num_classes") != std::string::npos);
}

TEST_CASE("segment: a network in stages has a level a stage") {
  const Model model = build(preset("rmt-xt-seg", 32, 5));
  Pass pass;
  CHECK(model.logits(random_images({1, 3, 32, 32}), pass).shape() == Shape{1, 5, 32, 32});
  const auto has = [&](const std::string& name) { return model.parameters.find(name) != nullptr; };
  CHECK(
      (has("pyramid.norms.3.weight") && !has("pyramid.norms.4.weight") && has("decoder.lateral.2.bn.bias")));
  CHECK((!has("backbone.head.weight") && !has("backbone.proj.weight") && !has("decoder.lateral.3.bn.bias")));
  Json config = preset("swin-seg", 32, 5);  // three stages
  config["aux"]["level"] = 2;
  CHECK(refusal(config).find("level") != std::string::npos);
  config["aux"]["level"] = 1;
  config["decoder"]["out_blocks"] = {0, 1, 2, 3};
  CHECK(refusal(config).find("out_blocks") != std::string::npos);
  config["decoder"].erase("out_blocks");
  config["backbone"].update({{"depth", {2}}});
  config["backbone"]["attention"]["heads"] = 3;
  CHECK(refusal(config).find("one stage") != std::string::npos);
  for (const char* name : {"rmt-xt", "swin"}) {
    const Model backbone = build(preset(name, 32, 0));
    CHECK_THROWS_WITH_AS(backbone.logits(random_images({1, 3, 32, 32}), pass),
                         doctest::Contains("classifies nothing"), Error);
  }
}

TEST_CASE("segment: presets have the expected parameters and multiply-accumulates") {
  const Cost plain = cost_of(preset("lvvit-s-seg", 512, 150)),
             prior = cost_of(preset("sp-vit-s-seg", 512, 150));
  CHECK(std::round(static_cast<double>(plain.parameters) / 1e3) == 44452);
  CHECK(std::round(static_cast<double>(plain.macs) / 1e6) == 113554);
  CHECK(std::round(static_cast<double>(prior.parameters) / 1e3) == 44535);
  CHECK(std::round(static_cast<double>(prior.macs) / 1e6) == 113611);
}
