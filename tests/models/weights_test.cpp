#include "models/weights.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "engine/ops/shape.h"
#include "models/parts/positions.h"
#include "tests/models/differences.h"
#include "tests/models/training.h"

using namespace tessera;

// The files imitate what timm would save: a model's own state under timm's names and in timm's shapes. Those
// of fixtures/timm were saved by timm 1.0.31 itself.

namespace {

Json tiny(const std::string& arch, const Json& changes = Json::object()) {
  Json config{{"arch", arch},
              {"image_size", 16},
              {"num_classes", 5},
              {"dim", 8},
              {"depth", 2},
              {"tokenizer", {{"kind", "patch"}, {"patch_size", 4}}},
              {"attention", {{"heads", 2}, {"qkv_bias", true}}}};
  if (arch == "pit") config["depth"] = {1, 1};
  if (arch == "cait") config["class_depth"] = 1;
  if (arch == "swin")
    config.update({{"depth", {1, 1, 1}}, {"window", 2}, {"pos_embed", false}, {"pool", {{"kind", "merge"}}}});
  config.merge_patch(changes);
  return config;
}

Tensor& at(NamedTensors& file, const std::string& name) {
  const auto found = std::find_if(file.begin(), file.end(), [&](const auto& t) { return t.first == name; });
  REQUIRE_MESSAGE(found != file.end(), name);
  return found->second;
}

void rename(NamedTensors& file, const std::string& from, const std::string& to) {
  for (auto& [name, value] : file)
    if (name.starts_with(from)) name.replace(0, from.size(), to);
}

std::vector<double> answers(const Model& model) {
  Pass pass;
  return model.logits(random_images({2, 3, model.image_size(), model.image_size()}), pass).values();
}

// A model that starts with other weights and has loaded the file.
Model loaded(const Json& config, const NamedTensors& file, const WeightOptions& options = {}) {
  Model model = build(config, {.seed = 99});
  model.parameters.load(adapt_weights(file, model, options, "file"), "file");
  return model;
}

std::string complaint(const Json& config, const NamedTensors& file, const WeightOptions& options = {}) {
  try {
    loaded(config, file, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("weights: timm's ViT loads unchanged") {
  const Model from = build(tiny("vit"));
  CHECK(answers(loaded(tiny("vit"), from.parameters.state())) == answers(from));
}

TEST_CASE("weights: timm's Swin, of newer and older versions") {
  const Model from = build(tiny("swin"));
  NamedTensors newer = from.parameters.state();
  rename(newer, "head.", "head.fc.");
  CHECK(answers(loaded(tiny("swin"), newer)) == answers(from));

  NamedTensors older = newer;
  rename(older, "layers.1.downsample.", "layers.0.downsample.");
  rename(older, "layers.2.downsample.", "layers.1.downsample.");
  older.emplace_back("layers.0.blocks.0.attn.relative_position_index", Tensor::zeros({4, 4}, DType::i64));
  older.emplace_back("layers.0.blocks.0.attn_mask", Tensor::zeros({4, 4, 4}));
  CHECK(answers(loaded(tiny("swin"), older)) == answers(from));
}

TEST_CASE("weights: timm's PiT gets a class token without a position and a pooling that adds nothing") {
  const Json config = tiny("pit");
  const Model from = build(config);
  const Tensor& point = *from.parameters.find("transformers.1.pool.point.weight");
  point.fill(0);
  for (int64_t i = 0; i < point.dim(0); ++i) point.data<float>()[i * point.dim(1) + i] = 1;
  from.parameters.find("transformers.1.pool.point.bias")->fill(0);
  const Tensor& positions = *from.parameters.find("pos_embed");  // [1, 1 + 16, 8]
  std::fill_n(positions.data<float>(), 8, 0.0F);

  NamedTensors file = from.parameters.state();
  std::erase_if(file, [](const auto& tensor) { return tensor.first.find(".point.") != std::string::npos; });
  rename(file, "patch_embed.proj.", "patch_embed.conv.");
  at(file, "pos_embed") = permute(slice(positions.detach(), 1, 1, 16), {0, 2, 1}).reshape({1, 8, 4, 4});
  CHECK(answers(loaded(config, file)) == answers(from));
  CHECK(answers(loaded(config, from.parameters.state())) == answers(from));  // its own file loads too
}

TEST_CASE("weights: the batch counts of timm's EfficientNet are left out") {
  const Json config{{"arch", "efficientnet"},
                    {"image_size", 8},
                    {"num_classes", 5},
                    {"stem_width", 4},
                    {"head_width", 8},
                    {"stages", {{{"width", 4}, {"depth", 1}, {"kernel", 3}, {"stride", 1}, {"expand", 2}}}}};
  const Model from = build(config);
  NamedTensors file = from.parameters.state();
  file.emplace_back("bn1.num_batches_tracked", Tensor::zeros({}, DType::i64));
  CHECK(answers(loaded(config, file)) == answers(from));
}

TEST_CASE("weights: timm's CaiT is refused with the reason, Tessera's own is not") {
  const Model from = build(tiny("cait"));
  NamedTensors file = from.parameters.state();
  CHECK(answers(loaded(tiny("cait"), file)) == answers(from));
  file.emplace_back("blocks.0.attn.proj_l.bias", Tensor::zeros({2}));
  CHECK(says(complaint(tiny("cait"), file), "the class token attends to itself"));
}

TEST_CASE("weights: all that does not fit is listed at once, and then nothing has changed") {
  const Model from = build(tiny("vit"));
  NamedTensors file = from.parameters.state();
  at(file, "norm.weight") = Tensor::zeros({9});
  at(file, "head.weight") = Tensor::zeros({7, 8});
  rename(file, "blocks.1.attn.qkv.bias", "blocks.1.attn.bias");
  const Model model = build(tiny("vit"), {.seed = 5});
  const std::vector<double> before = answers(model);
  std::string said;
  try {
    model.parameters.load(adapt_weights(file, model, {}, "file"), "file");
  } catch (const Error& error) {
    said = error.what();
  }
  for (const char* part : {"norm.weight: [9]", "head.weight: [7, 8]", "blocks.1.attn.qkv.bias [24]",
                           "blocks.1.attn.bias [24]"}) {
    CAPTURE(said);
    CHECK(says(said, part));
  }
  CHECK(answers(model) == before);
}

TEST_CASE("weights: positions are resized where asked, after their layout is the model's") {
  for (const char* arch : {"vit", "pit", "swin", "cait"}) {
    CAPTURE(arch);
    const Json positions = arch == std::string("swin") ? Json{{"pos_embed", true}} : Json::object();
    const Model from = build(tiny(arch, positions));  // a grid of 4 x 4
    Json config = tiny(arch, positions);
    config["image_size"] = 32;  // 8 x 8
    const NamedTensors file = from.parameters.state();
    CHECK(says(complaint(config, file), "pos_embed: "));
    const Model model = loaded(config, file, {.resize_positions = true});
    const Tensor& own = *from.parameters.find("pos_embed");
    const Tensor wanted = resize_pos_embed(own.detach(), {4, 4}, {8, 8}, own.dim(1) - 16);
    CHECK(model.parameters.find("pos_embed")->values() == wanted.values());
    CHECK(says(complaint(config, file), "of another shape"));
  }
}

TEST_CASE("weights: positions that are no square grid stay, and are listed") {
  const Model from = build(tiny("vit"));
  NamedTensors file = from.parameters.state();
  at(file, "pos_embed") = Tensor::zeros({1, 12, 8});
  CHECK(says(complaint(tiny("vit"), file, {.resize_positions = true}), "pos_embed: [1, 12, 8]"));
}

TEST_CASE("weights: a head of another count of classes stays fresh where asked") {
  for (const char* arch : {"vit", "swin"}) {
    CAPTURE(arch);
    const Model from = build(tiny(arch));
    const Json config = tiny(arch, {{"num_classes", 9}});
    NamedTensors file = from.parameters.state();
    if (arch == std::string("swin")) rename(file, "head.", "head.fc.");
    CHECK(says(complaint(config, file), "head.weight: [5, "));
    const Model model = loaded(config, file, {.fresh_head = true});
    CHECK(model.parameters.find("head.weight")->values() ==
          build(config, {.seed = 99}).parameters.find("head.weight")->values());
    CHECK(model.parameters.find("patch_embed.proj.weight")->values() ==
          from.parameters.find("patch_embed.proj.weight")->values());
  }
}

TEST_CASE("weights: a segmenter takes a classifier like its backbone, and keeps its own decoder") {
  const Json stem{{"kind", "conv_stem"}, {"patch_size", 8}, {"channels", 4}};
  for (const bool dense : {false, true}) {
    CAPTURE(dense);
    Json backbone = tiny("lvvit", {{"depth", 4}, {"tokenizer", stem}, {"dense", dense}});
    const Model from = build(backbone, {.seed = 5});
    backbone["num_classes"] = 0;
    backbone.erase("dense");
    const Json config{
        {"arch", "segment"},
        {"image_size", 32},
        {"num_classes", 3},
        {"backbone", backbone},
        {"decoder",
         {{"kind", "upernet"}, {"out_blocks", {0, 1, 2, 3}}, {"top_channels", 9}, {"channels", 6}}}};
    const NamedTensors file = from.parameters.state();
    CHECK(says(complaint(config, file), "backbone.pos_embed: [1, 5, 8]"));
    const Model model = loaded(config, file, {.resize_positions = true}), own = build(config, {.seed = 99});
    for (const Parameter& p : model.parameters) {
      CAPTURE(p.name);
      if (!p.name.starts_with("backbone."))
        CHECK(p.value.values() == own.parameters.find(p.name)->values());
      else if (p.name != "backbone.pos_embed")
        CHECK(p.value.values() == from.parameters.find(p.name.substr(9))->values());
    }
    NamedTensors other = file;
    rename(other, "blocks.3.", "blocks.4.");
    CHECK(says(complaint(config, other, {.resize_positions = true}), "backbone.blocks.4."));
  }
}

TEST_CASE("weights: a segmenter on stages takes the classifier's stages, timm's names of a Swin's too") {
  for (const std::string& name : {std::string("rmt-xt"), std::string("swin")}) {
    CAPTURE(name);
    const Model from = build(preset(name, 64, 10), {.seed = 5});
    NamedTensors file = from.parameters.state();
    if (name == "swin") {
      rename(file, "layers.1.downsample.", "layers.0.downsample.");
      rename(file, "layers.2.downsample.", "layers.1.downsample.");
      rename(file, "head.", "head.fc.");
    }
    const Json config = preset(name + "-seg", 64, 3);
    const Model model = loaded(config, file), own = build(config, {.seed = 99});
    for (const Parameter& p : model.parameters) {
      CAPTURE(p.name);
      const Tensor* const source = p.name.starts_with("backbone.") ? from.parameters.find(p.name.substr(9))
                                                                   : own.parameters.find(p.name);
      REQUIRE(source != nullptr);
      CHECK(p.value.values() == source->values());
    }
  }
}

TEST_CASE("weights: what timm saved gives timm's logits") {
  for (const char* name : {"vit", "swin", "pit", "pit-overlapping", "efficientnet"}) {
    CAPTURE(name);
    const std::filesystem::path folder = std::filesystem::path(TESSERA_FIXTURES) / "timm";
    const TensorFile answers = read_safetensors(folder / (name + std::string("-answers.safetensors")));
    const Model model = build(parse_json(answers.metadata.at("config"), name));
    load_weights(model, folder / (name + std::string(".safetensors")));
    Pass pass;
    const std::vector<double> logits = model.logits(*answers.find("input"), pass).values();
    const std::vector<double> wanted = answers.find("logits")->values();
    REQUIRE(logits.size() == wanted.size());
    double difference = 0, largest = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      difference = std::max(difference, std::abs(logits[i] - wanted[i]));
      largest = std::max(largest, std::abs(wanted[i]));
    }
    CHECK(std::isfinite(logits[0]));
    CHECK(difference <= 2e-6 * largest);  // measured: at most 7.4e-7; both sides are computed in f32
  }
}
