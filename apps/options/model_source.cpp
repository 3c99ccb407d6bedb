#include "apps/options/model_source.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/options/options.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "models/presets.h"

namespace tessera {

namespace {

// The model's part of a config: the whole, or what a training run's config has under "model".
Json model_part(const Json& config, const std::string& where) {
  check(config.is_object(), where, ": a config is a JSON object");
  if (config.contains("model") && config.at("model").is_object()) return config.at("model");
  check(config.contains("arch"), where, ": no \"arch\" in it, so it describes no model");
  return config;
}

// An exported model and a fixture have it as "config", a checkpoint of tessera train as "model".
Json config_in_checkpoint(const std::string& path) {
  const TensorFile file = read_safetensors(path);
  for (const char* key : {"config", "model"})
    if (const auto found = file.metadata.find(key); found != file.metadata.end())
      return parse_json(found->second, path + ": " + key);
  fail(path, ": its metadata holds no config; give the model's config.json instead");
}

// Fails for a folder, which is no MODEL, with the file in it that is one where it is a run's. A preset's name
// is one beside a folder of that name too.
void check_no_folder(const std::string& model) {
  const std::filesystem::path folder(model);
  std::error_code unseen;
  if (is_preset(model) || !std::filesystem::is_directory(folder, unseen)) return;
  std::string hint;
  for (const char* file : {"best.safetensors", "last.safetensors"})
    if (hint.empty() && std::filesystem::exists(folder / file, unseen))
      hint = "; give " + (folder / file).string();
  fail(model, ": is a folder, and a model is a preset, a config (.json) or a checkpoint (.safetensors)",
       hint);
}

}  // namespace

Option* ModelSource::add_to(Command& command, const std::string& option) {
  Option* model =
      command.add_option(option, model_, "A preset, a config (.json) or a checkpoint (.safetensors)");
  model->type_name("MODEL");
  if (!model_.empty()) model->capture_default_str();
  const auto size = [&](const char* name, int64_t& value, const char* what) {
    command.add_option(name, value, what)->check(positive())->capture_default_str()->type_name("N");
  };
  size("--image-size", image_size_, "Of a preset: pixels a side");
  size("--classes", classes_, "Of a preset: number of classes");
  command_ = &command;
  return model;
}

Json ModelSource::config() const {
  const bool is_config = model_.ends_with(".json"), is_checkpoint = model_.ends_with(".safetensors");
  if (!is_config && !is_checkpoint) check_no_folder(model_);
  if (!is_config && !is_checkpoint) return preset(model_, image_size_, classes_);
  if (command_) expect_not_given(*command_, model_, {"--image-size", "--classes"});
  return without_nulls(model_part(is_config ? read_json(model_) : config_in_checkpoint(model_), model_));
}

Json ModelSource::config_of_preset(const std::string& name) const {
  return preset(name, image_size_, classes_);
}

void expect_not_given(const Command& command, const std::string& model,
                      std::initializer_list<const char*> options) {
  for (const char* option : options)
    check(!command.given(option), model, " says itself what ", option, " would; leave it out");
}

}  // namespace tessera
