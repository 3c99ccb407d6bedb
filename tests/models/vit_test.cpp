#include "models/vit.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/check/gradient_check.h"
#include "engine/core/error.h"
#include "engine/ops/loss.h"
#include "models/presets.h"
#include "tests/models/differences.h"
#include "tests/models/training.h"

using namespace tessera;

namespace {

// A small ViT with every score term.
Json everything() {
  return {{"arch", "vit"},
          {"image_size", 8},
          {"in_channels", 2},
          {"num_classes", 3},
          {"dim", 12},
          {"depth", 2},
          {"drop_path", 0.5},
          {"tokenizer", {{"kind", "shifted"}, {"patch_size", 2}}},
          {"attention",
           {{"heads", 2},
            {"scale", "learned"},
            {"mask_diagonal", true},
            {"relative_bias", true},
            {"prior", {{"sharing", "head"}, {"hidden", 3}}},
            {"decay", {{"kind", "content"}, {"alpha", 0.5}}}}}};
}

// The last block reaches the logits through the class token alone, whose pairs have no prior, decay or bias,
// so the gradients of these parameters are zero.
bool has_no_gradient(const std::string& name) {
  return name.starts_with("blocks.1.attn.prior") || name.starts_with("blocks.1.attn.gate") ||
         name == "blocks.1.attn.relative_position_bias_table";
}

Tensor loss_of(const Model& model, const Tensor& images, Pass& pass) {
  return cross_entropy(model.logits(images, pass), Tensor::from(std::vector<int64_t>{2, 0}, {2}));
}

}  // namespace

TEST_CASE("a key that is null is as one that is left out") {
  Json config = everything(), shorter = config;
  config["in_channels"] = config["drop_path"] = config["tokenizer"]["ratio"] = nullptr;
  shorter.erase("in_channels");
  shorter.erase("drop_path");
  const Model model = build(config);
  CHECK(model.in_channels() == 3);
  CHECK(model.config == build(shorter).config);
  Pass pass;
  CHECK(model.logits(random_tensor({1, 3, 8, 8}, 1).to(DType::f32), pass).shape() == Shape{1, 3});
}

TEST_CASE("a temperature of t divides the scores by t, as a query divided by t does") {
  Json config = everything();
  config["attention"] = {{"heads", 2}};
  const Model plain = build(config, {.dtype = DType::f64});
  const Tensor images = random_tensor({2, 2, 8, 8}, 99);
  Pass pass;
  const std::vector<double> at_1 = plain.logits(images, pass).values();
  for (const char* scale : {"fixed", "learned"}) {
    CAPTURE(scale);
    config["attention"].update({{"temperature", 4.0}, {"scale", scale}});
    const Model warm = build(config, {.dtype = DType::f64});
    for (const Parameter& p : warm.parameters)  // q is the first third of the rows
      if (p.name.ends_with("attn.qkv.weight")) {
        const Tensor q = p.value.rows(0, p.value.dim(0) / 3);
        std::vector<double> values = q.values();
        for (double& value : values) value *= 4;
        q.copy_from(Tensor::from(values, q.shape(), DType::f64));
      }
    const std::vector<double> same = warm.logits(images, pass).values();
    for (size_t i = 0; i < at_1.size(); ++i) CHECK(same[i] == doctest::Approx(at_1[i]).epsilon(1e-12));
  }
  config["attention"]["temperature"] = 0;
  CHECK_THROWS_WITH_AS(build(config), doctest::Contains("attention.temperature is 0"), Error);
}

TEST_CASE("a ViT with every score term has the gradient of central differences") {
  const Model model = build(everything(), {.dtype = DType::f64});
  perturb(model);
  const Tensor images = random_tensor({2, 2, 8, 8}, 99);
  Pass pass;
  check_slopes(model, [&] { return loss_of(model, images, pass); });
  for (const Parameter& p : model.parameters) {
    CAPTURE(p.name);
    double largest = 0;
    for (const double g : p.value.grad().values()) largest = std::max(largest, std::abs(g));
    CHECK((largest > 1e-9) != has_no_gradient(p.name));
  }
}

TEST_CASE("evaluation draws nothing; training drops paths, the same for the same seed") {
  const Model model = build(everything());
  const Tensor images = random_tensor({2, 2, 8, 8}, 1).to(DType::f32);
  const auto logits = [&](bool training, uint64_t seed) {
    Pass pass{training, Random(seed)};
    return model.logits(images, pass).values();
  };
  CHECK(logits(false, 1) == logits(false, 2));
  CHECK(logits(true, 1) == logits(true, 1));
  CHECK(logits(true, 1) != logits(true, 2));
}

TEST_CASE("a pass that wants the answer only drops the same paths and gives the same answer") {
  const Tensor images = random_tensor({9, 2, 8, 8}, 1);
  for (const DType type : {DType::f32, DType::f64, DType::bf16}) {
    const Model model = build(everything(), {.dtype = type});
    for (const bool training : {false, true}) {
      CAPTURE(training);
      const auto logits = [&](bool answer_only) {
        Pass pass{.training = training, .random = Random(5), .answer_only = answer_only};
        const Tensor answer = model.logits(images.to(type), pass);
        CHECK(pass.keys == (training ? 4u : 0u));
        return answer;
      };
      // Both have the same bits, unless a build without optimisation fuses products and sums unevenly.
      const double rounding = type == DType::f64 ? 1e-14 : type == DType::f32 ? 1e-6 : 0.01;
      CHECK(relative_error(logits(true), logits(false)) <= rounding);
    }
  }
}

TEST_CASE("a pass that wants the answer only saves the last block's other tokens") {
  const Json config = preset("vit", 32, 10);
  // Each of 64 tokens: query and projection, the MLP, its norm, and its scores of 65 keys and their values.
  const int64_t a_token = 2 * 192 * 192 + 2 * 192 * 384 + 192 + 2 * 192 * 65;
  CHECK(cost_of(config).macs - cost_of(config, true).macs == 64 * a_token);
  CHECK(cost_of(preset("swin", 32, 10)).macs == cost_of(preset("swin", 32, 10), true).macs);
}

TEST_CASE("the modifiers that sharing and kind select make the documented parameters") {
  Json config = everything();
  config["attention"]["prior"]["sharing"] = "model";
  CHECK(build(config).parameters.find("prior.fc1.weight")->shape() == Shape{3, 2});
  config["attention"]["prior"]["sharing"] = "layer";
  CHECK(build(config).parameters.find("blocks.1.attn.prior.fc2.weight")->shape() == Shape{1, 3});
  const Model model = build(everything());
  CHECK(model.parameters.find("blocks.0.attn.prior.fc1.weight")->shape() == Shape{6, 2});
  CHECK(model.parameters.find("blocks.0.attn.gate.weight")->shape() == Shape{2, 12});
  CHECK(model.parameters.find("blocks.0.attn.scale")->shape() == Shape{2});
  CHECK(model.parameters.find("blocks.0.attn.relative_position_bias_table")->shape() == Shape{49, 2});
  CHECK(model.parameters.find("patch_embed.norm.weight")->shape() == Shape{2 * 5 * 4});
}

TEST_CASE("patches overlap where their stride says so; a stride of their own size changes nothing") {
  Json config = everything();
  config["tokenizer"] = {{"kind", "patch"}, {"patch_size", 4}, {"stride", 3}};
  const Model model = build(config, {.dtype = DType::f64});
  CHECK(model.parameters.find("pos_embed")->shape() == Shape{1, 1 + 2 * 2, 12});  // at 0 and 3; 6 has no room
  perturb(model);
  const Tensor images = random_tensor({2, 2, 8, 8}, 99);
  Pass pass;
  check_slopes(model, [&] { return loss_of(model, images, pass); });

  const auto logits = [&](const Json& options) {
    Json with = everything();
    with["tokenizer"] = options;
    return build(with, {.dtype = DType::f64}).logits(images, pass).values();
  };
  CHECK(logits({{"kind", "patch"}, {"patch_size", 4}, {"stride", 4}}) ==
        logits({{"kind", "patch"}, {"patch_size", 4}}));
}

TEST_CASE("a config that makes no sense is refused with the reason") {
  const auto says = [](const std::function<void(Json&)>& change, const std::string& part) {
    Json config = everything();
    change(config);
    check_refused(config, part);
  };
  says([](Json& c) { c["arch"] = "vitt"; }, "did you mean 'vit'?");
  says([](Json& c) { c["attention"]["masc_diagonal"] = true; }, "mask_diagonal");
  says([](Json& c) { c["image_size"] = 9; }, "9 pixels");
  says([](Json& c) { c["drop_path"] = 1.0; }, "drop_path");
  says([](Json& c) { c["attention"]["heads"] = 13; }, "heads");
  says([](Json& c) { c["attention"]["prior"]["sharing"] = "heads"; }, "head");
  says([](Json& c) { c["tokenizer"]["post_norm"] = true; }, "post_norm");
  says([](Json& c) { c["tokenizer"]["stride"] = 1; }, "tokenizer.stride goes with kind patch");
  says([](Json& c) { c["tokenizer"]["patch_size"] = 16; }, "8 pixels is smaller than a patch of 16");
  says([](Json& c) { c["attention"]["decay"] = {{"kind", "fixed"}, {"initial", 0.0}}; }, "positive");
  says([](Json& c) { c.erase("dim"); }, "dim");
  CHECK(refusal(everything()) == "");
}

TEST_CASE("images of another size are refused with both sizes") {
  const Model model = build(everything());
  Pass pass;
  CHECK_THROWS_WITH_AS(model.logits(Tensor::zeros({1, 3, 8, 8}), pass),
                       "model: images [1, 3, 8, 8], this vit takes [B, 2, 8, 8]", Error);
}

TEST_CASE("presets have the expected parameters and multiply-accumulates") {
  struct Row {
    const char* name;
    int64_t parameters, macs;
  };
  for (const Row& row : {Row{"vit", 2757, 189749}, Row{"t-vit", 2757, 189749}, Row{"l-vit", 2757, 189749},
                         Row{"s-vit", 2906, 199254}, Row{"sl-vit", 2906, 199254}}) {
    CAPTURE(row.name);
    const Cost cost = cost_of(preset(row.name, 64, 200));
    CHECK(std::llround(static_cast<double>(cost.parameters) / 1e3) == row.parameters);
    CHECK(std::llround(static_cast<double>(cost.macs) / 1e4) ==
          std::llround(static_cast<double>(row.macs) / 1e1));
  }
}
