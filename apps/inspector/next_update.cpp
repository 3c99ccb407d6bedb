#include "apps/inspector/next_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/training/step.h"
#include "apps/training/train_state.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "engine/optim/clip.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

double rms(const std::vector<double>& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(x.size(), 1)));
}

// A copy of the model whose parameters have copies of the model's gradients.
Model with_gradients(const Model& model) {
  const Model copy = copy_as(model, model.parameters.begin()->value.dtype());
  for (const Parameter& p : copy.parameters) {
    const Tensor gradient = model.parameters.find(p.name)->grad();
    if (!p.trainable || !gradient.defined()) continue;
    p.value.leaf()->grad = gradient.clone();
    p.value.leaf()->stale = false;
  }
  return copy;
}

NamedTensors in_type(const NamedTensors& state, DType dtype) {
  NamedTensors converted;
  for (const auto& [name, tensor] : state)
    converted.emplace_back(name, is_float(tensor.dtype()) ? tensor.to(dtype) : tensor);
  return converted;
}

}  // namespace

NextStep default_step() {
  OptimizerConfig optimizer;
  optimizer.lr = 1e-4;
  optimizer.weight_decay = 0.05;
  return {.optimizer = optimizer,
          .lr = optimizer.lr,
          .words =
              "a new AdamW with learning rate 0.0001 and weight decay 0.05, as there is no run whose "
              "optimizer could go on"};
}

NextStep next_step_of(const fs::path& path) {
  const fs::path folder = fs::is_directory(path) ? path : path.parent_path();
  const fs::path config_file = folder / "config.json", state_file = folder / "state.safetensors";
  if (!fs::exists(config_file) || !fs::exists(state_file)) return default_step();
  const TrainConfig config = read_train_config(read_json(config_file), config_file.string());
  const TensorFile file = read_safetensors(state_file);
  const auto text = file.metadata.find("position");
  check(text != file.metadata.end(), file.where,
        ": is not the state of a run: its metadata has no 'position'");
  const std::string where = file.where + ": position";
  const Position position = read_position(parse_json(text->second, where), where);
  return {
      .optimizer = config.optimizer,
      .lr = position.lr,
      .clip = config.clip,
      .highest_lr = config.optimizer.lr,
      .state = with_prefix(file.tensors, "optimizer."),
      .words = fmt::format("the run's {} with its moments after epoch {}, at the learning rate of the last "
                           "step, {:.4g}{}",
                           config.optimizer.kind == "sgd" ? "SGD" : "AdamW", position.epoch, position.lr,
                           config.clip > 0 ? fmt::format(", clipped at {:.4g}", config.clip) : "")};
}

Json learning_rate_of(const NextStep& step) {
  return {{"now", step.lr}, {"highest", std::max(step.lr, step.highest_lr)}};
}

Json updates_of(const Model& model, const NextStep& step) {
  const Model moved = with_gradients(model);
  const auto optimizer = make_optimizer(step.optimizer, moved.parameters);
  if (!step.state.empty())
    optimizer->load_state(in_type(step.state, optimizer->parameters().front().dtype()),
                          "the run's optimizer");
  if (step.clip > 0) clip_by_norm(optimizer->parameters(), step.clip);
  optimizer->step(step.lr);
  Json updates = Json::object();
  for (const Parameter& p : model.parameters) {
    if (!p.trainable || !p.value.grad().defined()) continue;
    const std::vector<double> before = p.value.values(), after = moved.parameters.find(p.name)->values();
    std::vector<double> change(before.size());
    for (size_t i = 0; i < before.size(); ++i) change[i] = after[i] - before[i];
    updates[p.name] = {{"weight_rms", rms(before)}, {"update_rms", rms(change)}};
  }
  return updates;
}

}  // namespace tessera
