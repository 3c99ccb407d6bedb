#include "apps/training/footprint.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "apps/training/step.h"
#include "engine/core/storage.h"
#include "models/presets.h"

using namespace tessera;

namespace {

int64_t in_use() { return static_cast<int64_t>(memory_stats(Device::cpu).in_use); }

// A preset, as wide as it is but not as deep: what kernels take for their own is then a large part.
Json shallow(const std::string& name, int64_t side) {
  Json config = preset(name, side, 10);
  const std::string arch = config.at("arch");
  if (arch == "lvvit") config.merge_patch({{"depth", 2}, {"sp_layers", name == "lvvit-s" ? 0 : 1}});
  if (!config.contains("depth") || arch == "resnet" || arch == "lvvit") return config;
  Json& depth = config.at("depth");
  if (depth.is_array())
    for (Json& stage : depth) stage = 1;
  else
    depth = 2;
  return config;
}

// A diffusion model is told classes, a segmenter one for each pixel.
Tensor targets(const Json& config, int64_t batch, int64_t side) {
  return Tensor::zeros(config.at("arch") == "segment" ? Shape{batch, side, side} : Shape{batch}, DType::i64);
}

// The most that the second step holds, which finds all that the first one left.
double really_allocated(const Json& config, int64_t batch, int64_t side) {
  const int64_t before = in_use();
  Model model = build(config);
  const auto optimizer = make_optimizer({}, model.parameters);
  TrainStep step(model, *optimizer, {.micro_batch = batch});
  Pass pass{.training = true};
  const Tensor images = Tensor::zeros({batch, model.in_channels(), side, side}),
               labels = targets(config, batch, side);
  step({images, labels}, 0.001, pass);
  reset_peak(Device::cpu);
  step({images, labels}, 0.001, pass);
  return static_cast<double>(memory_stats(Device::cpu).peak) - static_cast<double>(before);
}

}  // namespace

TEST_CASE("footprint: what a training step really allocates, within 10 %") {
  const struct {
    const char* name;
    int64_t batch, side;
  } cases[] = {
      {"sl-vit", 4, 32},   {"sl-vit", 1, 64},          {"sl-swin", 4, 32},     {"sl-cait", 4, 32},
      {"sl-pit", 4, 32},   {"sl-t2t", 2, 64},          {"lvvit-s", 1, 32},     {"lvvit-s", 4, 64},
      {"sp-vit-s", 4, 32}, {"rmt-xt", 4, 32},          {"sdt-h-t", 2, 32},     {"dit-s-2", 4, 32},
      {"resnet56", 4, 32}, {"efficientnet-b0", 4, 32}, {"lvvit-s-seg", 2, 32},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    CAPTURE(c.batch);
    CAPTURE(c.side);
    const Json config = shallow(c.name, c.side);
    const StepMemory predicted = step_memory_of(config, c.batch);
    CHECK(static_cast<double>(predicted.total()) ==
          doctest::Approx(really_allocated(config, c.batch, c.side)).epsilon(0.1));
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
