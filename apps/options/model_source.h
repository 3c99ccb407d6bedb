#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "apps/options/command.h"
#include "engine/io/json.h"

namespace tessera {

// MODEL on the command line: the name of a preset, a config (.json: of a model or of a training run), or a
// checkpoint or fixture (.safetensors), which holds its config.
class ModelSource {
 public:
  ModelSource() = default;
  ModelSource(std::string model, int64_t image_size, int64_t classes)
      : model_(std::move(model)), image_size_(image_size), classes_(classes) {}

  // Adds MODEL as `option` ("--model", or "model" for a positional), --image-size and --classes; what this
  // was made with are the defaults. Returns the option of MODEL.
  Option* add_to(Command& command, const std::string& option);

  const std::string& name() const { return model_; }
  // The model's config. Fails for an unknown name, and if a size is given although the file already holds it.
  Json config() const;
  // The config of another preset at the given size. Fails with the reason if the preset has no such size.
  Json config_of_preset(const std::string& name) const;

 private:
  std::string model_;
  int64_t image_size_ = 32, classes_ = 10;
  const Command* command_ = nullptr;  // whose options these are
};

// Fails where one of the command's options was given that the model says itself, as it is from a file.
void expect_not_given(const Command& command, const std::string& model,
                      std::initializer_list<const char*> options);

}  // namespace tessera
