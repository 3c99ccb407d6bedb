#include "models/lvvit.h"

#include <doctest/doctest.h>

#include <cmath>

#include "models/presets.h"
#include "tests/error_of.h"
#include "tests/models/training.h"

using namespace tessera;

namespace {

// A small dense SP-ViT with every score term that its blocks can have.
Json everything() {
  return {{"arch", "lvvit"},
          {"image_size", 16},
          {"num_classes", 4},
          {"dim", 12},
          {"depth", 3},
          {"mlp_ratio", 2.0},
          {"tokenizer", {{"kind", "conv_stem"}, {"patch_size", 4}, {"channels", 5}}},
          {"attention",
           {{"heads", 2},
            {"scale", "learned"},
            {"mask_diagonal", true},
            {"relative_bias", true},
            {"decay", {{"kind", "content"}}},
            {"prior", {{"sharing", "head"}, {"hidden", 3}}}}},
          {"skip_lam", 2.0},
          {"pos_cnn", true},
          {"sp_layers", 2},
          {"dense", true},
          {"mix_token", true}};
}

TensorMap labelled() {
  return {{"input", random_images({4, 3, 16, 16})},
          {"target", Tensor::from(std::vector<int64_t>{0, 1, 2, 3}, {4})}};
}

}  // namespace

TEST_CASE("lvvit: the loss falls, dense with boxes or not, by any stem") {
  for (const bool dense : {true, false})
    for (const char* stem : {"conv_stem", "shifted stem", "shifted", "patch"}) {
      CAPTURE(dense);
      CAPTURE(stem);
      Json config = everything();
      config["dense"] = config["mix_token"] = dense;
      if (stem == std::string("shifted stem"))
        config["tokenizer"]["directions"] = "diagonal";
      else if (stem != std::string("conv_stem"))
        config["tokenizer"] = {{"kind", stem}, {"patch_size", 4}};
      const std::vector<double> loss = losses(build(config), labelled(), 25, 1e-2);
      CHECK(loss.back() < 0.7 * loss.front());
    }
}

TEST_CASE("lvvit: in training boxes are drawn, in evaluation none") {
  const Model model = build(everything());
  const auto loss = [&](bool drop, uint64_t seed) {
    Pass pass{true, Random(seed), drop};
    return model.training_loss(labelled(), {}, pass).loss.item();
  };
  CHECK(loss(true, 1) == loss(true, 1));
  CHECK(loss(true, 1) != loss(true, 2));
  CHECK(loss(false, 1) == loss(false, 2));
  TensorMap given = labelled();
  given["box"] = Tensor::from(std::vector<int64_t>{0, 4, 0, 4}, {4});
  Pass pass{.training = true, .drop = false};
  const Tensor logits = model.training_loss(given, {}, pass).logits;
  Pass plain{.training = true, .drop = false};
  const std::vector<double> swapped = model.training_loss(labelled(), {}, plain).logits.values();
  // Exchanging the whole grid reverses the batch.
  for (size_t i = 0; i < 16; ++i)
    CHECK(logits.values()[i] == doctest::Approx(swapped[(3 - i / 4) * 4 + i % 4]).epsilon(1e-4));
}

TEST_CASE("lvvit: names, and where the class token joins") {
  const Model model = build(everything());
  const auto shape = [&](const char* name) { return model.parameters.find(name)->shape(); };
  CHECK(shape("pos_embed") == Shape{1, 16, 12});
  CHECK(shape("patch_embed.conv1.weight") == Shape{5, 3, 7, 7});
  CHECK(shape("patch_embed.proj.weight") == Shape{12, 5, 2, 2});
  CHECK(shape("blocks.1.attn.prior.fc1.weight") == Shape{6, 2});
  CHECK(shape("blocks.2.pos_cnn.weight") == Shape{12, 1, 3, 3});
  CHECK(shape("aux_head.weight") == Shape{4, 12});
  CHECK(model.parameters.find("blocks.2.attn.prior.fc1.weight") == nullptr);
  Json plain = everything();
  plain["sp_layers"] = 0;
  plain["attention"].erase("prior");
  CHECK(build(plain).parameters.find("pos_embed")->shape() == Shape{1, 17, 12});
}

TEST_CASE("lvvit: a backbone has neither norm nor heads and classifies nothing") {
  Json config = everything();
  config["num_classes"] = 0;
  const Model model = build(config);
  CHECK(model.parameters.find("norm.weight") == nullptr);
  CHECK(model.parameters.find("aux_head.weight") == nullptr);
  Pass pass;
  CHECK(error_of([&] {
          model.logits(random_images({1, 3, 16, 16}), pass);
        }) == "lvvit: with num_classes 0 it is a backbone, which classifies nothing");
}

TEST_CASE("lvvit: refusals") {
  const auto says = [](const char* key, const Json& value, const std::string& part) {
    Json config = everything();
    config[key] = value;
    check_refused(config, part);
  };
  says("sp_layers", 3, "one at least must follow");
  says("sp_layers", 0, "go together");
  says("dense", false, "mix_token needs dense");
  says("tokenizer", {{"kind", "conv_stem"}, {"patch_size", 5}}, "an even one");
  says("tokenizer", {{"kind", "conv_stem"}, {"patch_size", 32}}, "not cut into patches");
  says("tokenizer", {{"kind", "patch"}, {"patch_size", 3}}, "16 pixels");
  says("tokenizer", {{"kind", "soft_split"}}, "kind");
  says("skip_lam", 0, "skip_lam");
}

TEST_CASE("lvvit: presets have the expected parameters and multiply-accumulates") {
  struct Row {
    const char* name;
    double parameters, macs;  // in thousands, in millions
  };
  for (const Row& row :
       {Row{"lvvit-t", 8535, 2874}, Row{"lvvit-s", 26152, 6559}, Row{"lvvit-m", 55831, 12687},
        Row{"lvvit-l", 150022, 34654}, Row{"sp-vit-t", 8573, 2875}, Row{"sp-vit-s", 26234, 6553},
        Row{"sp-vit-m", 55969, 12664}, Row{"sp-vit-l", 150273, 34568}}) {
    CAPTURE(row.name);
    const Cost cost = cost_of(preset(row.name, 224, 1000));
    CHECK(std::round(static_cast<double>(cost.parameters) / 1e3) == row.parameters);
    CHECK(std::round(static_cast<double>(cost.macs) / 1e6) == row.macs);
  }
}

TEST_CASE("lvvit: parameters as the released code reports them, in millions at 448 pixels too") {
  const auto millions = [](const char* name, int64_t image_size) {
    return std::round(static_cast<double>(cost_of(preset(name, image_size, 1000)).parameters) / 1e4) / 100;
  };
  CHECK(millions("lvvit-s", 224) == 26.15);
  CHECK(millions("lvvit-m", 224) == 55.83);
  CHECK(millions("lvvit-m", 384) == 56.03);
  CHECK(millions("lvvit-m", 448) == 56.13);
  CHECK(millions("lvvit-l", 448) == 150.47);
}
