#include "apps/inspector/next_update.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/inspector/picture_inputs.h"
#include "engine/optim/adamw.h"
#include "models/presets.h"
#include "tests/inspector/coloured.h"
#include "tests/io/temporary_folder.h"

using namespace tessera;

namespace {

PassInputs small_inputs(DType dtype) {
  Json config = preset("vit", 16, 3);
  config["depth"] = 1;
  return inputs_of_picture(build(config, {.dtype = dtype}), {.image = coloured(16)}, {imagenet_normalisation},
                           {.target = 1});
}

double rms(const std::vector<double>& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

}  // namespace

TEST_CASE("updates_of: AdamW's first step moves by the learning rate and the decay, and leaves the model") {
  const PassInputs pass = small_inputs(DType::f64);
  const InspectedPass seen = inspect_pass(pass);
  const std::vector<double> before = pass.model.parameters.find("head.weight")->values();
  const Json updates = updates_of(pass.model, default_step());
  CHECK(pass.model.parameters.find("head.weight")->values() == before);
  CHECK(updates.size() == static_cast<size_t>(std::ssize(trainable(pass.model.parameters))));
  const std::vector<double> g = seen.record.value("head.weight").gradient.values();
  std::vector<double> change(g.size());
  for (size_t i = 0; i < g.size(); ++i)
    change[i] = -1e-4 * (0.05 * before[i] + g[i] / (std::abs(g[i]) + 1e-8));
  CHECK(std::abs(updates["head.weight"]["update_rms"].get<double>() - rms(change)) < 1e-12);
  CHECK(std::abs(updates["head.weight"]["weight_rms"].get<double>() - rms(before)) < 1e-12);
}

TEST_CASE("updates_of: the step that the optimizer then takes, with its moments and clipping") {
  const PassInputs pass = small_inputs(DType::f32);
  OptimizerConfig config;
  AdamW optimizer(make_groups(trainable(pass.model.parameters), config.weight_decay),
                  {config.beta1, config.beta2, config.eps});
  for (int i = 0; i < 3; ++i) {
    (void)inspect_pass(pass);
    optimizer.step(1e-3);
  }
  (void)inspect_pass(pass);
  const Json updates = updates_of(pass.model, {.optimizer = config, .lr = 1e-3, .state = optimizer.state()});
  const Json clipped =
      updates_of(pass.model, {.optimizer = config, .lr = 1e-3, .clip = 1e-6, .state = optimizer.state()});
  std::map<std::string, std::vector<double>> before;
  for (const auto& [name, p] : trainable(pass.model.parameters)) before[name] = p.values();
  optimizer.step(1e-3);
  for (const auto& [name, p] : trainable(pass.model.parameters)) {
    std::vector<double> change = p.values();
    for (size_t i = 0; i < change.size(); ++i) change[i] -= before[name][i];
    CHECK_MESSAGE(updates[name]["update_rms"].get<double>() == rms(change), name);
  }
  CHECK(clipped["head.weight"]["update_rms"] != updates["head.weight"]["update_rms"]);
}

TEST_CASE("next_step_of: without a run the default is said") {
  const TemporaryFolder folder;
  CHECK(next_step_of(folder / "x.safetensors").words.find("a new AdamW") == 0);
}
