#include "apps/exporting/timm.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/exporting/timm_limits.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

Tensor& tensor(NamedTensors& tensors, const std::string& name) {
  for (auto& [its_name, value] : tensors)
    if (its_name == name) return value;
  fail("timm: the model has no ", name);
}

bool ends_with_any(const std::string& name, std::initializer_list<const char*> endings) {
  return std::ranges::any_of(endings, [&](const char* end) { return name.ends_with(end); });
}

double scale_of(const Json& config, double timms_eps) {
  return std::sqrt(timms_eps / config.value("norm_eps", 1e-5));
}

// Makes the residual stream x of ViT's and PiT's blocks a x. What reads it first normalises it, but for PiT's
// pooling, which is linear.
void scale_stream(NamedTensors& weights, double a) {
  if (a == 1) return;
  for (auto& [name, value] : weights) {
    const bool starts = name.starts_with("patch_embed.") || name == "cls_token" || name == "pos_embed";
    const bool adds =
        ends_with_any(name, {"attn.proj.weight", "attn.proj.bias", "mlp.fc2.weight", "mlp.fc2.bias"});
    const bool shifts = ends_with_any(name, {"pool.conv.bias", "pool.fc.bias"});
    if (starts || adds || shifts) value = scale(value, a);
  }
}

Json common_arguments(const Json& config) {
  return {{"img_size", config.at("image_size")},
          {"in_chans", config.value("in_channels", 3)},
          {"patch_size", config.at("tokenizer").at("patch_size")},
          {"mlp_ratio", config.value("mlp_ratio", 2.0)}};
}

TimmModel vit(const Model& model) {
  const Json &config = model.config, &attention = config.at("attention");
  TimmModel timm{"vit_tiny_patch16_224", common_arguments(config), model.parameters.state(), "head"};
  timm.arguments.update({{"embed_dim", config.at("dim")},
                         {"depth", config.at("depth")},
                         {"num_heads", attention.at("heads")},
                         {"qkv_bias", attention.value("qkv_bias", false)}});
  scale_stream(timm.weights, scale_of(config, 1e-6));
  return timm;
}

// Factors of the rows of a 1 x 1 convolution that mixes no channels, [D, D, 1, 1]. Fails where it mixes some.
std::vector<double> unmixed(const Tensor& point, const std::string& name) {
  const int64_t dim = point.dim(0);
  const std::vector<double> values = point.values();
  std::vector<double> factors;
  for (int64_t i = 0; i < dim; ++i)
    for (int64_t j = 0; j < dim; ++j)
      if (const double value = values[static_cast<size_t>(i * dim + j)]; i == j)
        factors.push_back(value);
      else
        check(value == 0, "timm: ", name,
              " mixes channels; timm's PiT pools by a depthwise convolution alone");
  return factors;
}

// y = p (conv(x)) + b for a diagonal p, as one depthwise convolution.
void merge_pool(NamedTensors& weights, const std::string& pool) {
  Tensor &weight = tensor(weights, pool + "conv.weight"), &bias = tensor(weights, pool + "conv.bias");
  const Tensor point = tensor(weights, pool + "point.weight");
  const int64_t dim = point.dim(0);
  const Tensor factors = Tensor::from(unmixed(point, pool + "point.weight"), {dim});
  weight = multiply(weight.detach(), factors.reshape({dim, 1, 1, 1}));
  bias = add(multiply(bias.detach(), factors), tensor(weights, pool + "point.bias").detach());
  std::erase_if(weights, [&](const auto& each) { return each.first.starts_with(pool + "point."); });
}

// The class token with its position, and the positions of the patches as a map. [1, 1 + N, D] -> [1, D, h, w]
void split_positions(NamedTensors& weights) {
  Tensor &token = tensor(weights, "cls_token"), &positions = tensor(weights, "pos_embed");
  const int64_t patches = positions.dim(1) - 1, dim = positions.dim(2),
                side = std::llround(std::sqrt(patches));
  token = add(token.detach(), slice(positions.detach(), 1, 0, 1));
  positions = permute(slice(positions.detach(), 1, 1, patches), {0, 2, 1}).reshape({1, dim, side, side});
}

TimmModel pit(const Model& model) {
  const Json &config = model.config, &attention = config.at("attention"), &tokenizer = config.at("tokenizer");
  TimmModel timm{"pit_ti_224", common_arguments(config), model.parameters.state(), "head"};
  const Json heads = attention.at("heads"), stages = config.at("depth");
  Json widths = Json::array();
  for (size_t i = 0; i < stages.size(); ++i)
    widths.push_back((config.at("dim").get<int64_t>() << i) / heads.at(i).get<int64_t>());
  timm.arguments.update({{"stride", tokenizer.value("stride", tokenizer.at("patch_size").get<int64_t>())},
                         {"base_dims", widths},
                         {"depth", stages},
                         {"heads", heads}});
  for (size_t i = 1; i < stages.size(); ++i)
    merge_pool(timm.weights, "transformers." + std::to_string(i) + ".pool.");
  scale_stream(timm.weights, scale_of(config, 1e-6));
  split_positions(timm.weights);
  NamedTensors biases;
  for (auto& [name, value] : timm.weights) {
    if (name.starts_with("patch_embed.proj.")) name.replace(0, 17, "patch_embed.conv.");
    if (name.ends_with("qkv.weight") && !attention.value("qkv_bias", false))
      biases.emplace_back(name.substr(0, name.size() - 6) + "bias", Tensor::zeros({value.dim(0)}));
  }
  timm.weights.insert(timm.weights.end(), biases.begin(), biases.end());
  return timm;
}

TimmModel swin(const Model& model) {
  const Json &config = model.config, &attention = config.at("attention");
  TimmModel timm{"swin_tiny_patch4_window7_224", common_arguments(config), model.parameters.state(),
                 "head.fc"};
  timm.arguments.update({{"embed_dim", config.at("dim")},
                         {"depths", config.at("depth")},
                         {"num_heads", attention.at("heads")},
                         {"window_size", config.value("window", 4)},
                         {"qkv_bias", attention.value("qkv_bias", false)}});
  if (attention.contains("head_dim")) timm.arguments["head_dim"] = same_for_stages(attention, "head_dim");
  for (auto& [name, value] : timm.weights)
    if (name.starts_with("head.")) name.replace(0, 5, "head.fc.");
  return timm;
}

TimmModel efficientnet(const Model& model) {
  return {"efficientnet_b0", Json{{"in_chans", model.config.value("in_channels", 3)}},
          model.parameters.state(), "classifier"};
}

Json config_of(const TimmModel& timm, const ExportSource& source) {
  const int64_t size = source.data.image_size;
  return {{"architecture", timm.architecture},
          {"num_classes", source.model.num_classes()},
          {"label_names", source.data.class_names},
          {"model_args", timm.arguments},
          {"pretrained_cfg",
           {{"num_classes", source.model.num_classes()},
            {"input_size", {source.model.in_channels(), size, size}},
            {"fixed_input_size", timm.arguments.contains("img_size")},
            {"crop_pct", 1.0},
            {"mean", source.data.normalisation.mean},
            {"std", source.data.normalisation.deviation},
            {"label_names", source.data.class_names},
            {"classifier", timm.classifier}}}};
}

}  // namespace

TimmModel timm_model(const Model& model) {
  check_timm_has(model.config);
  const auto arch = model.config.at("arch").get<std::string>();
  if (arch == "vit") return vit(model);
  if (arch == "pit") return pit(model);
  return arch == "swin" ? swin(model) : efficientnet(model);
}

void export_timm(const ExportSource& source, const std::string& folder) {
  const TimmModel timm = timm_model(source.model);
  std::error_code error;
  fs::create_directories(folder, error);
  check(!error, folder, ": the folder cannot be made: ", error.message());
  std::map<std::string, std::string> metadata = export_metadata(source);
  metadata["format"] = "pt";  // as safetensors.torch writes it
  write_safetensors(fs::path(folder) / "model.safetensors", timm.weights, metadata);
  write_json(fs::path(folder) / "config.json", config_of(timm, source));
}

}  // namespace tessera
