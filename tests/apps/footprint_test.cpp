#include "apps/footprint.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "apps/step.h"
#include "engine/core/storage.h"
#include "models/presets.h"

using namespace tessera;

namespace {

int64_t in_use() { return static_cast<int64_t>(memory_stats(Device::cpu).in_use); }

// A preset, as wide as it is but not as deep. LV-ViT stays: the scratch memory of its stem is its largest.
Json shallow(const char* name) {
  Json config = preset(name, 32, 10);
  if (config.at("arch") == "lvvit") return config;
  Json& depth = config.at("depth");
  if (depth.is_array())
    for (Json& stage : depth) stage = 1;
  else
    depth = 4;
  return config;
}

}  // namespace

TEST_CASE("footprint: what a training step really allocates, within 10 %") {
  constexpr int64_t batch = 4;
  for (const char* name : {"sl-vit", "sl-swin", "sl-cait", "sl-pit", "sl-t2t", "sp-vit-s", "rmt-xt"}) {
    CAPTURE(name);
    const Json config = shallow(name);
    const StepMemory predicted = step_memory_of(config, batch);
    const int64_t before = in_use();
    Model model = build(config);
    const auto optimizer = make_optimizer({}, model.parameters);
    TrainStep step(model, *optimizer, {.micro_batch = batch});
    Pass pass{.training = true};
    const Tensor images = Tensor::zeros({batch, 3, 32, 32}), labels = Tensor::zeros({batch}, DType::i64);
    step({images, labels}, 0.001, pass);
    reset_peak(Device::cpu);
    step({images, labels}, 0.001, pass);
    const auto real = static_cast<double>(memory_stats(Device::cpu).peak) - static_cast<double>(before);
    CHECK(static_cast<double>(predicted.total()) == doctest::Approx(real).epsilon(0.1));
    CHECK(predicted.optimizer > 1.9 * static_cast<double>(predicted.gradients));
    CHECK(predicted.activations > 0);
  }
}

TEST_CASE("footprint: every preset has one") {
  for (const std::string& name : preset_names()) {
    if (name.ends_with("-b") || name.ends_with("-l") || name.ends_with("-m"))
      continue;  // the same, but larger
    CAPTURE(name);
    const bool is_large = name.ends_with("-seg");
    const Json config = preset(name, is_large ? 64 : 32, 10);
    const Footprint footprint = footprint_of(config);
    CHECK(footprint.activations > 0);
    CHECK(step_memory_of(config, 2).weights == footprint.weights);
  }
}
