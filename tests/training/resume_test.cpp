// A run that is broken off after any of its steps, and goes on with another number of threads, ends with the
// bytes of one that was not.

#include <doctest/doctest.h>

#include <vector>

#include "engine/core/parallel.h"
#include "tests/training/small_run.h"

using namespace tessera;

namespace {

struct Family {
  const char* name;
  SmallRun run;
};

// Between them all that a state must hold: dropout, drop path, an average, Mixup and CutMix, moments of both
// optimizers, gradients of uneven parts, running statistics, a diffusion model's times and noise.
std::vector<Family> families() {
  Json vit = small_vit;
  vit.merge_patch({{"drop_path", 0.3}, {"depth", 2}});
  const Json dit{{"arch", "dit"},
                 {"dim", 8},
                 {"depth", 1},
                 {"tokenizer", vit["tokenizer"]},
                 {"attention", vit["attention"]},
                 {"time_dim", 4},
                 {"steps", 40},
                 {"label_dropout", 0.3}};
  const Json stage{{"width", 4}, {"depth", 2}, {"kernel", 3}, {"stride", 1}, {"expand", 2}};
  const Json efficientnet{
      {"arch", "efficientnet"}, {"stem_width", 4}, {"stages", {stage}}, {"dropout", 0.3}, {"drop_path", 0.3}};
  const Json rmt{{"arch", "rmt"},
                 {"dim", {4, 8}},
                 {"depth", {1, 1}},
                 {"mlp_ratio", {2, 2}},
                 {"proj_dim", 6},
                 {"drop_path", 0.3},
                 {"tokenizer", {{"kind", "conv_stem"}, {"strides", {1, 1, 1, 1}}}},
                 {"attention", {{"heads", {2, 2}}, {"decay", {{"kind", "content"}, {"alpha", 0.5}}}}}};
  const Json segmenter{{"arch", "segment"},
                       {"backbone",
                        {{"arch", "lvvit"},
                         {"num_classes", 0},
                         {"dim", 8},
                         {"depth", 4},
                         {"tokenizer", {{"kind", "conv_stem"}, {"patch_size", 4}, {"channels", 4}}},
                         {"attention", {{"heads", 2}, {"head_dim", 4}}}}},
                       {"decoder",
                        {{"kind", "upernet"},
                         {"out_blocks", {0, 1, 2, 3}},
                         {"top_channels", 4},
                         {"channels", 4},
                         {"pool_scales", {1, 2}},
                         {"dropout", 0.3}}}};
  const Json sgd{{"kind", "sgd"}, {"lr", 0.05}, {"nesterov", true}};
  return {{"vit", small_run({{"model", vit},
                             {"ema", 0.9},
                             {"micro_batch", 4},
                             {"clip", 1},
                             {"repetitions", 2},
                             {"watch", {{"every_steps", 2}}},
                             {"augment", {{"autoaugment", "cifar10"}, {"mixup", 1}, {"cutmix", 1}}}})},
          {"resnet", small_run({{"model", small_resnet}, {"optimizer", sgd}, {"ema", 0.9}})},
          {"efficientnet", small_run({{"model", efficientnet}})},
          {"rmt", small_run({{"model", rmt}, {"watch", {{"every_steps", 1}}}})},
          {"dit", small_run({{"model", dit}, {"ema", 0.9}, {"micro_batch", 4}})},
          {"segmenter", small_run({{"model", segmenter}, {"data", {{"name", "shapes-seg"}}}},
                                  make_shape_scenes({.image_size = 16, .train = 20, .validation = 10}))}};
}

}  // namespace

TEST_CASE("every family: k steps and the rest are the whole, at each k, on any number of threads") {
  for (const Family& family : families()) {
    CAPTURE(family.name);
    const TemporaryFolder folder;
    set_threads(2);
    REQUIRE(train_in(folder / "whole", family.run) == Ending::finished);
    set_threads(1);
    REQUIRE(train_in(folder / "alone", family.run) == Ending::finished);
    check_same_files(folder / "whole", folder / "alone");
    for (int64_t k = 1; k <= 5; ++k) {
      CAPTURE(k);
      const auto parts = folder / ("parts-" + std::to_string(k));
      set_threads(static_cast<int>(1 + k % 2));
      REQUIRE(train_in(parts, family.run, {.steps = k}) == Ending::stopped);
      set_threads(static_cast<int>(2 - k % 2));
      REQUIRE(train_in(parts, family.run) == Ending::finished);
      check_same_files(folder / "whole", parts);
    }
  }
  set_threads(0);
}

TEST_CASE("a run that is broken off after each of its steps is the whole") {
  const TemporaryFolder folder;
  for (const Family& family : families()) {
    CAPTURE(family.name);
    const auto whole = folder / (std::string(family.name) + "-whole"), parts = folder / family.name;
    train_in(whole, family.run);
    int sessions = 1;
    while (train_in(parts, family.run, {.steps = 1}) != Ending::finished) ++sessions;
    CHECK(sessions == 6);
    check_same_files(whole, parts);
  }
}
