#include "models/weights.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "engine/ops/shape.h"
#include "models/parts/positions.h"

namespace tessera {

namespace {

bool is_no_weight(const std::string& name) {
  constexpr std::array endings{"num_batches_tracked", "relative_position_index", "attn_mask"};
  return std::any_of(endings.begin(), endings.end(), [&](const char* end) { return name.ends_with(end); });
}

const Tensor* find(const NamedTensors& tensors, std::string_view name) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.first == name; });
  return found == tensors.end() ? nullptr : &found->second;
}

void rename_start(NamedTensors& tensors, std::string_view from, std::string_view to) {
  for (auto& [name, value] : tensors)
    if (name.starts_with(from)) name.replace(0, from.size(), to);
}

// "layers.0.downsample.norm.bias" -> "layers.1.downsample.norm.bias".
std::string of_next_stage(const std::string& name) {
  constexpr std::string_view start = "layers.";
  if (!name.starts_with(start)) return name;
  int stage = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + start.size(), end, stage);
  if (error != std::errc() || !std::string_view(rest, end).starts_with(".downsample.")) return name;
  return std::string(start) + std::to_string(stage + 1) + std::string(rest, end);
}

void adapt_swin(NamedTensors& tensors) {
  rename_start(tensors, "head.fc.", "head.");
  const bool counts_from_before = std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.first.starts_with("layers.0.downsample.");
  });
  if (!counts_from_before) return;
  for (auto& [name, value] : tensors) name = of_next_stage(name);
}

// A position map as rows, after a row of zeros for the class token. [1, D, h, w] -> [1, 1 + h w, D]
Tensor with_class_row(const Tensor& map) {
  const int64_t dim = map.dim(1), patches = map.dim(2) * map.dim(3);
  const Tensor rows = permute(map.reshape({1, dim, patches}), {0, 2, 1});
  return concat({Tensor::zeros({1, 1, dim}, rows.dtype()), rows}, 1);
}

// The weight of a 1 x 1 convolution that changes nothing. [D, D, 1, 1]
Tensor identity(const Shape& shape) {
  const Tensor weight = Tensor::zeros(shape);
  for (int64_t i = 0; i < shape[0]; ++i) weight.data<float>()[i * shape[1] + i] = 1;
  return weight;
}

void adapt_pit(NamedTensors& tensors, const Model& model) {
  if (!find(tensors, "patch_embed.conv.weight")) return;
  rename_start(tensors, "patch_embed.conv.", "patch_embed.proj.");
  for (auto& [name, value] : tensors)
    if (name == "pos_embed" && value.rank() == 4 && is_float(value.dtype())) value = with_class_row(value);
  for (const Parameter& p : model.parameters) {
    if (find(tensors, p.name)) continue;
    if (p.name.ends_with(".pool.point.weight")) tensors.emplace_back(p.name, identity(p.value.shape()));
    if (p.name.ends_with(".pool.point.bias")) tensors.emplace_back(p.name, Tensor::zeros(p.value.shape()));
  }
}

void refuse_timms_cait(const NamedTensors& tensors, const std::string& where) {
  for (const auto& [name, value] : tensors)
    check(
        !name.ends_with(".proj_l.bias") && !name.ends_with(".proj_w.bias"), where, ": '", name,
        "' is of timm's CaiT, which is another network: its head mixing has biases, its class layers mix no ",
        "heads, and the class token attends to itself too; its weights cannot stand for this CaiT's");
}

// The layout of a position embedding: a square grid after `prefix` class tokens, 0 or 1.
struct Layout {
  int64_t prefix;
  Grid grid;
};

std::optional<Layout> layout_of(const Tensor& positions) {
  if (positions.rank() != 3 || positions.dim(0) != 1) return {};
  const int64_t tokens = positions.dim(1),
                side = std::llround(std::floor(std::sqrt(static_cast<double>(tokens))));
  if (side < 1 || tokens - side * side > 1) return {};
  return Layout{tokens - side * side, {side, side}};
}

Tensor resized(const Tensor& positions, const Tensor& own) {
  const auto from = layout_of(positions), to = layout_of(own);
  if (!from || !to || from->prefix != to->prefix || !is_float(positions.dtype())) return positions;
  const DType dtype = wide(positions.dtype());
  return resize_pos_embed(positions.to(dtype), from->grid, to->grid, to->prefix);
}

void resize_positions(NamedTensors& tensors, const Model& model) {
  for (const Parameter& p : model.parameters) {
    if (!p.name.ends_with("pos_embed")) continue;
    for (auto& [name, value] : tensors) {
      if (name != p.name || value.shape() == p.value.shape()) continue;
      value = p.trainable ? resized(value, p.value)
                          : p.value.clone();  // a buffer, T2T's table of sines, is recomputed
    }
  }
}

bool is_of_head(const std::string& name) {
  constexpr std::array heads{"head.",       "aux_head.",         "fc.",
                             "classifier.", "decoder.classify.", "aux.classify."};
  return std::any_of(heads.begin(), heads.end(), [&](const char* head) { return name.starts_with(head); });
}

void take_own_head(NamedTensors& tensors, const Model& model) {
  std::erase_if(tensors, [](const auto& tensor) { return is_of_head(tensor.first); });
  for (const Parameter& p : model.parameters)
    if (is_of_head(p.name)) tensors.emplace_back(p.name, p.value.clone());
}

constexpr std::string_view of_backbone = "backbone.";

bool is_backbone_alone(const NamedTensors& file, const Model& model) {
  const bool has_one = model.config.at("arch") == "segment";
  return has_one && std::none_of(file.begin(), file.end(),
                                 [](const auto& tensor) { return tensor.first.starts_with(of_backbone); });
}

// A classifier as a segmenter's backbone: its final norm and heads stay behind, and the model keeps its own
// decoder.
void become_backbone(NamedTensors& tensors, const Model& model) {
  std::erase_if(tensors, [](const auto& tensor) {
    return is_of_head(tensor.first) || tensor.first.starts_with("norm.") || tensor.first.starts_with("proj.");
  });
  for (auto& [name, value] : tensors) name = std::string(of_backbone) + name;
  for (const Parameter& p : model.parameters)
    if (!p.name.starts_with(of_backbone)) tensors.emplace_back(p.name, p.value.clone());
}

}  // namespace

NamedTensors adapt_weights(const NamedTensors& file, const Model& model, const WeightOptions& options,
                           const std::string& where) {
  const auto arch = model.config.at("arch").get<std::string>();
  const bool backbone_alone = is_backbone_alone(file, model);
  NamedTensors tensors = file;
  std::erase_if(tensors, [](const auto& tensor) { return is_no_weight(tensor.first); });
  if (arch == "swin" || (backbone_alone && model.config.at("backbone").at("arch") == "swin"))
    adapt_swin(tensors);
  if (arch == "pit") adapt_pit(tensors, model);
  if (arch == "cait") refuse_timms_cait(tensors, where);
  if (backbone_alone) become_backbone(tensors, model);
  if (options.resize_positions) resize_positions(tensors, model);
  if (options.fresh_head) take_own_head(tensors, model);
  return tensors;
}

std::string load_weights(const Model& model, const std::filesystem::path& path,
                         const WeightOptions& options) {
  const TensorFile file = read_safetensors(path);
  model.parameters.load(adapt_weights(file.tensors, model, options, file.where), file.where);
  if (!is_backbone_alone(file.tensors, model)) return "";
  return "a classifier's, for the backbone; its head is left out, and all that makes classes of pixels "
         "begins anew";
}

}  // namespace tessera
