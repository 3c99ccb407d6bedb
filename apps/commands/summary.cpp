#include <fmt/core.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/options/model_source.h"
#include "apps/options/options.h"
#include "apps/reporting/table.h"
#include "apps/training/checkpoint.h"
#include "apps/training/footprint.h"
#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/core/storage.h"
#include "models/model.h"
#include "models/parts/tokenizer.h"
#include "models/weights.h"

namespace tessera {

namespace {

struct Options {
  ModelSource model;
  std::string weights;
  WeightOptions loading;
  int64_t batch = 1;
  bool json = false;
};

constexpr Column columns[] = {
    {"name", "module"},
    {"ops", "operations"},
    {"output", "output", as_shape},
    {"parameters", "parameters", as_integer},
    {"macs", "MACs", as_integer},
    {"activation_bytes", "activations", as_bytes},
};

// A row for each module, in the order in which they run.
class Layers {
 public:
  void ran(const ForwardEvent& event) {
    Row& row = at(ModuleScope::path());
    if (row.ops.empty() || row.ops.back() != event.op.name) row.ops.emplace_back(event.op.name);
    const Shape& shape = event.output.shape();
    row.output.assign(shape.begin(), shape.end());
    row.macs += event.macs;
    const auto in_use = static_cast<int64_t>(memory_stats(Device::cpu).in_use);
    row.activation_bytes += in_use - in_use_;
    in_use_ = in_use;
    outputs_.emplace_back(index_.at(ModuleScope::path()), event.output);
  }

  // Subtracts the outputs that only this class still holds, since no backward pass will read them.
  void forward_is_over() {
    for (auto& [row, output] : outputs_) {
      const bool is_kept = output.shared();
      const auto before = static_cast<int64_t>(memory_stats(Device::cpu).in_use);
      output = {};
      if (!is_kept)
        rows_[row].activation_bytes += static_cast<int64_t>(memory_stats(Device::cpu).in_use) - before;
    }
  }

  // Counts the parameter for the module that owns it, or for the nearest enclosing module that runs
  // operations
  // ("patch_embed" for its projection).
  void owns(const Parameter& parameter) {
    if (!parameter.trainable) return;
    std::string path = parameter.name;
    do path.resize(path.find('.') == std::string::npos ? 0 : path.rfind('.'));
    while (!path.empty() && !index_.contains(path));
    at(path).parameters += parameter.value.elements();
  }

  Json json() const {
    Json rows = Json::array();
    for (const Row& row : rows_)
      rows.push_back({{"name", row.name},
                      {"ops", row.ops},
                      {"output", row.output},
                      {"parameters", row.parameters},
                      {"macs", row.macs},
                      {"activation_bytes", row.activation_bytes}});
    return rows;
  }

 private:
  struct Row {
    std::string name;
    std::vector<std::string> ops;
    std::vector<int64_t> output;
    int64_t parameters = 0, macs = 0, activation_bytes = 0;
  };

  Row& at(const std::string& path) {
    const auto [found, is_new] = index_.emplace(path, rows_.size());
    if (is_new) rows_.push_back({path.empty() ? "(model)" : path, {}, {}});
    return rows_[found->second];
  }

  std::vector<Row> rows_;
  std::map<std::string, size_t> index_;
  std::vector<std::pair<size_t, Tensor>> outputs_;  // of every op, with its row
  int64_t in_use_ = static_cast<int64_t>(memory_stats(Device::cpu).in_use);
};

Json layers_of(const Model& model, int64_t batch) {
  const Tensor images = Tensor::empty({batch, model.in_channels(), model.image_size(), model.image_size()});
  Layers layers;
  const Tape tape;  // keeps in memory what a backward pass would read
  const Observer observer([&](const ForwardEvent& event) { layers.ran(event); });
  Pass pass;
  model.forward_all(images, pass);
  layers.forward_is_over();
  for (const Parameter& parameter : model.parameters) layers.owns(parameter);
  return layers.json();
}

// One row for each layer: multiply-accumulates and shapes for one image, activations for a batch.
Json layers_of(const Json& config, int64_t batch) {
  const DryRun dry;
  const Model model = build(config);
  Json rows = layers_of(model, 1);
  const Json of_batch = layers_of(model, batch);
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i]["activation_bytes"] = of_batch.at(i).at("activation_bytes");
  return rows;
}

Json total_of(const Json& rows) {
  Json total{{"name", "total"}, {"parameters", 0}, {"macs", 0}, {"activation_bytes", 0}};
  for (const Json& row : rows)
    for (const char* key : {"parameters", "macs", "activation_bytes"})
      total[key] = total[key].get<int64_t>() + row[key].get<int64_t>();
  return total;
}

// The memory of a training step. A batch norm over a single value cannot train; then there is a "reason"
// instead.
Json memory_of(const Json& config, int64_t batch) try {
  const StepMemory memory = step_memory_of(config, batch);
  return {{"batch", batch},
          {"weights", memory.weights},
          {"gradients", memory.gradients},
          {"optimizer", memory.optimizer},
          {"activations", memory.activations},
          {"total", memory.total()}};
} catch (const Error& error) {
  return {{"batch", batch}, {"reason", error.what()}};
}

constexpr Column memory_columns[] = {
    {"weights", "weights", as_bytes},       {"gradients", "gradients", as_bytes},
    {"optimizer", "AdamW", as_bytes},       {"activations", "activations", as_bytes},
    {"total", "a training step", as_bytes},
};

// A convolution, or the patches that a linear map takes.
struct Window {
  int64_t kernel, stride;
};

// The pixels a side that one token sees after these windows, the first on the image: equation 3 of "Vision
// Transformer for Small-Size Datasets", r = (r' - 1) j + k, with r' that of what follows.
int64_t receptive_field(const std::vector<Window>& windows) {
  int64_t r = 1;
  for (auto window = windows.rbegin(); window != windows.rend(); ++window)
    r = (r - 1) * window->stride + window->kernel;
  return r;
}

// The receptive field of the config's tokenizer: SPT widens a patch by its shift on both sides. Null for a
// model without a tokenizer, and for one whose tokens attend to one another while they are made (T2T).
Json receptive_field_of(const Json& config) {
  if (!config.contains("tokenizer")) return nullptr;
  const Json& tokenizer = config["tokenizer"];
  const std::string kind = tokenizer.value("kind", "");
  const int64_t patch = tokenizer.value("patch_size", int64_t{0});
  if (kind == "patch") return patch;
  if (kind == "shifted") return patch + 2 * shift_of(patch, tokenizer.value("ratio", 0.5));
  if (kind != "conv_stem") return nullptr;
  std::vector<Window> windows;  // RMT's stem has its strides in the config, LV-ViT's ends in patches
  if (patch > 0)
    windows = {{7, 2}, {3, 1}, {3, 1}, {patch / 2, patch / 2}};
  else
    for (const Json& stride : tokenizer.value("strides", Json{2, 1, 2, 1}))
      windows.push_back({3, stride.get<int64_t>()});
  return receptive_field(windows);
}

ExitCode summarise(const Options& options) {
  const Json config = options.model.config();
  std::string remark;
  if (!options.weights.empty()) {
    const Model model = build(config);
    remark = load_weights(model, options.weights, options.loading);
    expect_finite_weights(model.parameters.state(), options.weights);
  }
  Json rows = layers_of(config, options.batch);
  const Json total = total_of(rows), memory = memory_of(config, options.batch);
  if (options.json) {
    print_json({{"model", config},
                {"layers", rows},
                {"total", total},
                {"memory", memory},
                {"receptive_field", receptive_field_of(config)}});
    return ExitCode::done;
  }
  rows.push_back(total);
  print_table(columns, rows);
  if (const Json side = receptive_field_of(config); !side.is_null())
    fmt::print("\nA token is made of {0} x {0} pixels, its receptive field.\n", side.get<int64_t>());
  if (memory.contains("reason")) {
    fmt::print("\nOutput and MACs for one image. No training step has so many images at once ({}):\n{}\n",
               options.batch, memory["reason"].get<std::string>());
    return ExitCode::done;
  }
  fmt::print(
      "\nOutput and MACs for one image; memory in f32, {} at once. A layer's activations are what\n"
      "forward leaves for the backward pass; at the peak of a training step there are\n\n",
      options.batch == 1 ? "one image" : fmt::format("{} images", options.batch));
  print_record(memory_columns, memory);
  if (!options.weights.empty())
    fmt::print("\n{} fits this model{}{}.\n", options.weights, remark.empty() ? "" : ": ", remark);
  return ExitCode::done;
}

}  // namespace

void add_summary(Command& app) {
  Command& command = add_command(
      app, "summary", "One model, layer by layer: output shape, parameters, multiply-accumulates, memory.",
      {"tessera summary sl-vit --image-size 32 --classes 10",
       "tessera summary runs/demo/best.safetensors --json",
       "tessera summary vit.json --weights vit.safetensors"});
  const auto options = std::make_shared<Options>();
  options->model.add_to(command, "model")->required();
  command.add_option("--batch", options->batch, "Images that go through at once, for the memory")
      ->check(positive())
      ->capture_default_str()
      ->type_name("N");
  Option* weights = command.add_option(
      "--weights", options->weights,
      "Weights, timm's say, to be held against the model; whatever does not fit is listed");
  weights->type_name("FILE");
  command
      .add_flag("--resize-positions", options->loading.resize_positions,
                "Their position embeddings may be of another image size")
      ->needs(weights);
  command.add_flag("--fresh-head", options->loading.fresh_head, "Their classifier may be of other classes")
      ->needs(weights);
  add_json(command, options->json);
  on_run(command, [options] { return summarise(*options); });
}

}  // namespace tessera
