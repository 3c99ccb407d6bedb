#include "apps/options/weights_source.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/options/options.h"
#include "models/weights.h"

namespace tessera {

void WeightsSource::add_to(Command& command) {
  Option* weights =
      command.add_option("--weights", file_, "Weights without a run, as timm saves them (.safetensors)");
  weights->type_name("FILE");
  Option* model = model_.add_to(command, "--model");
  weights->needs(model);
  command.add_flag("--resize-positions", resize_positions_,
                   "Carry their position embeddings to the model's image size");
  command.add_option("--names", names_, "Text file with the name of a class a line; otherwise numbers")
      ->type_name("FILE");
  const auto channels = [&](const char* name, std::vector<float>& values, const char* what) {
    command.add_option(name, values, what)
        ->delimiter(',')
        ->expected(3)
        ->capture_default_str()
        ->type_name("R,G,B");
  };
  channels("--mean", mean_, "Of pixels from 0 to 1: what is taken off");
  channels("--deviation", deviation_, "What they are divided by then");
  for (const char* name :
       {"--model", "--image-size", "--classes", "--resize-positions", "--names", "--mean", "--deviation"})
    command.get_option(name)->needs(weights);
}

std::vector<std::string> WeightsSource::class_names(int64_t classes) const {
  std::vector<std::string> names;
  if (names_.empty()) {
    for (int64_t k = 0; k < classes; ++k) names.push_back("class " + std::to_string(k));
    return names;
  }
  std::ifstream lines(names_);
  check(lines.good(), names_, ": cannot be opened");
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  check(std::ssize(names) == classes, names_, ": has ", names.size(), " lines with a name, the model ",
        classes, " classes");
  return names;
}

Checkpoint WeightsSource::read(Device device) const {
  const auto is_positive = [](float x) { return x > 0; };
  check(std::all_of(deviation_.begin(), deviation_.end(), is_positive), "--deviation must be above 0");
  Checkpoint checkpoint;
  checkpoint.path = file_;
  checkpoint.model = build(model_.config(), {.device = device});
  const Model& model = checkpoint.model;
  const std::string remark = load_weights(model, file_, {.resize_positions = resize_positions_});
  check(remark.empty(), file_, ": is ", remark, "; train --init FILE trains the rest first");
  expect_finite_weights(model.parameters.state(), file_);
  DataFacts& data = checkpoint.data;
  data.image_size = model.image_size();
  data.class_names = class_names(model.num_classes());
  std::copy_n(mean_.begin(), 3, data.normalisation.mean.begin());
  std::copy_n(deviation_.begin(), 3, data.normalisation.deviation.begin());
  checkpoint.training = Json::object();
  return checkpoint;
}

}  // namespace tessera
