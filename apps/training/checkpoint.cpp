#include "apps/training/checkpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/training/number_watch.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"

namespace tessera {

namespace {

constexpr const char* format = "tessera checkpoint 2";
constexpr const char* older_format = "tessera checkpoint 1";  // without a checksum

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json to_json(const DataFacts& data) {
  Json json{{"source", to_json(data.source)},
            {"image_size", data.image_size},
            {"mean", data.normalisation.mean},
            {"deviation", data.normalisation.deviation},
            {"class_names", data.class_names}};
  if (data.latent_scale > 0) json.update({{"channels", data.channels}, {"latent_scale", data.latent_scale}});
  return json;
}

std::array<float, 3> read_channels(Fields& f, const char* key) {
  const auto numbers = f.get<std::vector<double>>(key);
  if (numbers.size() != 3) f.fail_at(key, "has ", numbers.size(), " numbers, wanted 3");
  std::array<float, 3> channels{};
  std::transform(numbers.begin(), numbers.end(), channels.begin(),
                 [](double x) { return static_cast<float>(x); });
  return channels;
}

DataFacts read_facts(const Json& json, const std::string& where) {
  DataFacts data;
  Fields f(json, where, "data");
  data.source = read_data_config(f.object("source"));
  data.image_size = f.get<int64_t>("image_size", Range::between(1, 4096));
  data.normalisation = {read_channels(f, "mean"), read_channels(f, "deviation")};
  data.class_names = f.get<std::vector<std::string>>("class_names");
  data.channels = f.get("channels", data.channels, Range::between(1, 4096));
  data.latent_scale = f.get("latent_scale", data.latent_scale, Range::at_least(0));
  f.done();
  return data;
}

Json metadata_of(const TensorFile& file, const char* key) {
  const auto found = file.metadata.find(key);
  check(found != file.metadata.end(), file.where,
        ": is no checkpoint of tessera train: its metadata has no '", key, "'");
  return parse_json(found->second, file.where + ": metadata " + key);
}

// Fails for a format of another version, and for a file that has lost its checksum.
void expect_whole(const TensorFile& file) {
  const auto written = file.metadata.find("format");
  if (written != file.metadata.end()) {
    check(written->second.starts_with("tessera checkpoint"), file.where,
          ": is no checkpoint of tessera train: ", "its format is '", written->second, "'");
    check(written->second == format || written->second == older_format, file.where, ": has the format '",
          written->second, "', this program reads '", format, "'");
    check(file.checked || written->second == older_format, file.where,
          ": has no checksum, so it was not written by this program as it is");
  }
}

}  // namespace

void expect_finite_weights(const NamedTensors& weights, const std::filesystem::path& path) {
  if (const auto bad = first_not_finite(weights)) fail(path.string(), ": ", *bad, "; weights must be finite");
}

std::filesystem::path checkpoint_file(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return path;
  for (const char* name : {"best.safetensors", "last.safetensors"})
    if (std::filesystem::exists(path / name)) return path / name;
  fail(path.string(),
       ": the folder holds neither best.safetensors nor last.safetensors; has its run finished an epoch?");
}

DataFacts::DataFacts(const DataConfig& from, const Dataset& dataset)
    : source(from),
      class_names(dataset.class_names),
      normalisation(dataset.normalisation),
      image_size(dataset.image_shape[1]),
      channels(dataset.image_shape[0]),
      latent_scale(dataset.latent_scale) {
  source.dir.clear();
  source.token_labels.clear();
  source.on_device = DataConfig{}.on_device;
}

Dataset DataFacts::empty_dataset() const {
  Dataset dataset;
  dataset.name = source.name;
  dataset.class_names = class_names;
  dataset.image_shape = {channels, image_size, image_size};
  dataset.latent_scale = latent_scale;
  dataset.normalisation = normalisation;
  return dataset;
}

std::map<std::string, std::string> checkpoint_metadata(const Json& model_config, const DataFacts& data,
                                                       const Json& training) {
  return {{"format", format},
          {"model", text_of(model_config)},
          {"data", text_of(to_json(data))},
          {"training", text_of(training)}};
}

void write_checkpoint(const std::filesystem::path& path, const NamedTensors& weights,
                      const Json& model_config, const DataFacts& data, const Json& training) {
  write_safetensors(path, weights, checkpoint_metadata(model_config, data, training));
}

Checkpoint read_checkpoint(const std::filesystem::path& path, Device device) {
  Checkpoint checkpoint;
  checkpoint.path = checkpoint_file(path);
  const TensorFile file = read_safetensors(checkpoint.path);
  expect_whole(file);
  expect_finite_weights(file.tensors, file.where);
  checkpoint.data = read_facts(metadata_of(file, "data"), file.where);
  checkpoint.training = metadata_of(file, "training");
  checkpoint.model = build(metadata_of(file, "model"), {.device = device});
  const Model& model = checkpoint.model;
  check(model.image_size() == checkpoint.data.image_size &&
            model.num_classes() == std::ssize(checkpoint.data.class_names),
        file.where, ": the model takes images of ", model.image_size(), " pixels and has ",
        model.num_classes(), " classes, its data ", checkpoint.data.image_size, " and ",
        checkpoint.data.class_names.size());
  model.parameters.load(file.tensors, file.where);
  return checkpoint;
}

}  // namespace tessera
