#include "apps/exporting/source.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/inspector/pass.h"
#include "apps/inspector/picture_inputs.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "engine/ops/noise.h"
#include "models/architectures.h"
#include "models/presets.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t key_of_sample = 17;

// "cifar" of runs/cifar/, "sl-vit" of sl-vit.safetensors.
std::string name_of(const std::string& source) {
  const fs::path path = fs::path(source).lexically_normal();
  const std::string name = path.has_filename() ? path.stem().string() : path.parent_path().stem().string();
  return name.empty() || name == "." ? "model" : name;
}

bool is_checkpoint(const fs::path& path) {
  return fs::is_directory(path) || read_safetensors(path).metadata.contains("data");
}

// The facts of a model that no data set has shaped.
DataFacts facts_without_data(const Model& model) {
  DataFacts facts;
  facts.image_size = model.image_size();
  facts.normalisation = model.task == Task::diffuse ? diffusion_normalisation : imagenet_normalisation;
  for (int64_t k = 0; k < model.num_classes(); ++k) facts.class_names.push_back(std::to_string(k));
  return facts;
}

Json config_at(const std::string& source, int64_t image_size, int64_t classes) {
  if (!source.ends_with(".json")) return preset(source, image_size, classes);
  const Json config = read_json(source);
  return config.contains("model") ? config.at("model") : config;
}

std::string text_of(Task task) {
  return task == Task::classify ? "classify" : task == Task::segment ? "segment" : "diffuse";
}

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

ExportSource read_export_source(const std::string& source, int64_t image_size, int64_t classes,
                                uint64_t seed) {
  ExportSource read{.name = name_of(source), .model = {}, .data = {}};
  if (fs::exists(source) && !source.ends_with(".json") && is_checkpoint(source)) {
    const Checkpoint checkpoint = read_checkpoint(source, Device::cpu);
    read.model = checkpoint.model;
    read.data = checkpoint.data;
    read.training = checkpoint.training;
    return read;
  }
  const bool is_fixture = fs::exists(source) && !source.ends_with(".json");
  read.model = is_fixture ? inputs_of_fixture(source, DType::f32).model
                          : build(config_at(source, image_size, classes), {.seed = seed});
  read.data = facts_without_data(read.model);
  return read;
}

std::map<std::string, std::string> export_metadata(const ExportSource& source) {
  const Json mean = source.data.normalisation.mean, deviation = source.data.normalisation.deviation;
  std::map<std::string, std::string> metadata{
      {"architecture", source.model.config.at("arch").get<std::string>()},
      {"task", text_of(source.model.task)},
      {"classes", text_of(Json(source.data.class_names))},
      {"mean", text_of(mean)},
      {"deviation", text_of(deviation)},
      {"image_size", std::to_string(source.data.image_size)},
      {"config", text_of(source.model.config)}};
  if (!source.data.source.name.empty()) metadata["data_set"] = source.data.source.name;
  return metadata;
}

NamedTensors export_sample(const Model& model, int64_t images) {
  const int64_t side = model.image_size();
  const Tensor input = normal_noise({images, model.in_channels(), side, side}, key_of_sample);
  Pass pass;
  if (model.task != Task::diffuse) return {{"images", input}, {"logits", model.logits(input, pass)}};
  std::vector<int64_t> times, labels;
  const int64_t steps = model.config.value("steps", int64_t{1000});
  for (int64_t i = 0; i < images; ++i) {
    times.push_back((i + 1) * steps / (images + 1));
    labels.push_back((i + 1) % model.num_classes());
  }
  const Tensor t = Tensor::from(times, {images}), y = Tensor::from(labels, {images});
  const TensorMap outputs =
      model.evaluate({{"input", input}, {"t", t}, {"y", y}, {"noise", Tensor::zeros(input.shape())}}, pass);
  return {{"images", input}, {"t", t}, {"y", y}, {"noise", entry(outputs, "logits")}};
}

void export_safetensors(const ExportSource& source, const std::string& path) {
  std::map<std::string, std::string> metadata = export_metadata(source);
  metadata.merge(checkpoint_metadata(source.model.config, source.data, source.training));
  write_safetensors(path, source.model.parameters.state(), metadata);
}

}  // namespace tessera
