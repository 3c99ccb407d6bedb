#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "engine/ops/correct.h"
#include "models/presets.h"
#include "tests/models/training.h"

namespace tessera {

// A preset of each architecture of classifiers, made small. Patches of a pixel (PiT and Swin at 16 x 16)
// shift by all of it.
struct Family {
  const char* preset;
  Json smaller;
};

inline std::vector<Family> families() {
  return {

      {"sl-vit", {{"dim", 32}, {"depth", 3}, {"attention", {{"heads", 4}, {"head_dim", 8}}}}},
      {"sl-pit",
       {{"dim", 16},
        {"tokenizer", {{"ratio", 1.0}}},
        {"depth", {1, 1, 1}},
        {"attention", {{"heads", {2, 2, 2}}, {"head_dim", 8}}}}},
      {"sl-swin",
       {{"dim", 16},
        {"tokenizer", {{"ratio", 1.0}}},
        {"depth", {1, 2, 1}},
        {"attention", {{"heads", {2, 2, 2}}, {"head_dim", 8}}}}},
      {"sl-cait", {{"dim", 32}, {"depth", 3}, {"class_depth", 1}, {"attention", {{"head_dim", 8}}}}},
      {"sl-t2t",
       {{"dim", 32}, {"depth", 3}, {"tokenizer", {{"token_dim", 16}}}, {"attention", {{"head_dim", 8}}}}},
      {"resnet56", {{"depth", 8}, {"width", 8}}},
      {"efficientnet-b0",
       {{"stem_width", 8},
        {"stages",
         {{{"width", 8}, {"depth", 1}, {"kernel", 3}, {"stride", 1}, {"expand", 1}},
          {{"width", 16}, {"depth", 2}, {"kernel", 5}, {"stride", 2}, {"expand", 4}}}}}},
      {"sp-vit-s",
       {{"dim", 32},
        {"depth", 4},
        {"sp_layers", 2},
        {"dense", false},
        {"mix_token", false},
        {"tokenizer", {{"patch_size", 4}, {"channels", 8}}},
        {"attention", {{"heads", 4}, {"head_dim", 8}, {"prior", {{"hidden", 4}}}}}}},
      {"rmt-xt", {{"dim", {16, 16, 32, 32}}, {"depth", {1, 1, 1, 1}}, {"proj_dim", 64}}},
      {"sdt-xt", {{"dim", {16, 16, 32, 32}}, {"depth", {1, 1, 1, 1}}, {"proj_dim", 64}}},
  };
}

// The number of AdamW steps until every image is classified correctly, or `most` if that is not enough.
inline int steps_to_learn(const Model& model, const TensorMap& inputs, double lr, int most) {
  AdamW optimizer(make_groups(trainable(model.parameters), 0));
  for (int step = 0; step < most; ++step) {
    Tape tape;
    Pass pass{.training = true, .random = Random(1), .drop = false};
    const auto [loss, logits] = model.training_loss(inputs, {}, pass);
    if (count_correct(logits.detach(), entry(inputs, "target")).integers()[0] == logits.dim(0)) return step;
    model.parameters.zero_grad();
    tape.backward(loss);
    optimizer.step(lr);
  }
  return most;
}

// Checks that each family learns the images of `inputs` by heart within `most` steps.
inline void check_all_learn(const TensorMap& inputs, int64_t classes, int most) {
  for (const auto& family : families()) {
    CAPTURE(family.preset);
    Json config = preset(family.preset, entry(inputs, "input").dim(2), classes);
    config.merge_patch(family.smaller);
    const int steps = steps_to_learn(build(config, {.seed = 1}), inputs, 0.003, most);
    CHECK(steps > 0);
    CHECK(steps < most);
  }
}

}  // namespace tessera
