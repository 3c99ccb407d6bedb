#pragma once

// A few training steps of small models, for comparing one way of computing them with another.

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "apps/training/step.h"
#include "engine/check/gradient_check.h"
#include "engine/optim/adamw.h"
#include "models/model.h"

namespace tessera {

// Arrays, as they are compared by their addresses, which two literals of the same text need not share.
inline constexpr char vit[] = R"({"arch": "vit", "image_size": 8, "num_classes": 3, "dim": 16, "depth": 2,
  "drop_path": 0.3, "tokenizer": {"kind": "shifted", "patch_size": 4},
  "attention": {"heads": 2, "scale": "learned", "mask_diagonal": true}})";
inline constexpr char dit[] = R"({"arch": "dit", "image_size": 8, "num_classes": 3, "dim": 16, "depth": 1,
  "tokenizer": {"kind": "patch", "patch_size": 4}, "time_dim": 8, "steps": 50, "label_dropout": 0.4,
  "attention": {"heads": 2, "decay": {"kind": "content"}}})";
inline constexpr char dit_sigma[] =
    R"({"arch": "dit", "image_size": 8, "num_classes": 3, "dim": 16, "depth": 1,
  "tokenizer": {"kind": "patch", "patch_size": 4}, "time_dim": 8, "steps": 21, "label_dropout": 0.4,
  "learn_sigma": true, "attention": {"heads": 2}})";
inline constexpr char resnet[] =
    R"({"arch": "resnet", "image_size": 8, "num_classes": 3, "depth": 8, "width": 4})";
inline constexpr char segmenter[] = R"({"arch": "segment", "image_size": 16, "num_classes": 3,
  "backbone": {"arch": "lvvit", "image_size": 16, "num_classes": 0, "dim": 8, "depth": 4,
    "tokenizer": {"kind": "conv_stem", "patch_size": 8, "channels": 4}, "attention": {"heads": 2}},
  "decoder": {"kind": "upernet", "out_blocks": [3, 0, 1, 2], "top_channels": 6, "channels": 6, "dropout": 0.2},
  "aux": {"level": 1, "channels": 4}})";
inline constexpr char lvvit[] =
    R"({"arch": "lvvit", "image_size": 16, "num_classes": 3, "dim": 8, "depth": 1,
  "tokenizer": {"kind": "conv_stem", "patch_size": 8, "channels": 4}, "attention": {"heads": 2},
  "dense": true, "mix_token": true})";

inline constexpr int count = 6;  // steps

enum class Way { at_once, late };  // each result at once, or after the next step has begun

struct How {
  Device device = Device::cpu;
  StepOptions options{.micro_batch = 0, .smoothing = 0.1, .graph = false};
  Way way = Way::at_once;
  int mixed_from = count;  // the batches from here on are mixed with others
  std::set<int> bad = {};  // the batches with an infinite pixel
  const char* config = vit;
  bool reads_back = false;  // whether the forward pass reads a number on the host, which no graph can do
  int watched_every = 0;    // steps 0, so many, twice as many ... are watched; 0: none
  bool one_place = false;   // all batches stand in the same memory of the device, one after another
};

// Images, and labels, or a segmenter's masks with pixels of no class.
inline StepBatch batch_of(const Model& model, uint64_t seed) {
  Random random(seed);
  const int64_t side = model.image_size();
  const bool by_pixel = model.config.at("arch") == "segment";
  const Tensor images = Tensor::empty({6, 3, side, side}),
               labels = Tensor::empty(by_pixel ? Shape{6, side, side} : Shape{6}, DType::i64);
  for (int64_t i = 0; i < images.elements(); ++i)
    images.data<float>()[i] = static_cast<float>(random.normal());
  for (int64_t i = 0; i < labels.elements(); ++i)
    labels.data<int64_t>()[i] =
        by_pixel && random.below(static_cast<int64_t>(seed) + 3) == 0 ? 255 : random.below(3);
  return {images, labels};
}

struct Trained {
  std::vector<StepResult> results;
  NamedTensors numbers;  // weights, moments, averages
};

// Some steps at a falling rate.
inline Trained train(const How& how) {
  Model model = build(parse_json(how.config, "config"), {.seed = 3, .device = how.device});
  if (how.reads_back)
    model.training_loss = [inner = model.training_loss](const TensorMap& inputs, const LossOptions& options,
                                                        Pass& pass) {
      TrainingLoss result = inner(inputs, options, pass);
      result.loss.item();
      return result;
    };
  AdamW optimizer(make_groups(trainable(model.parameters), 0.05, {}));
  Ema average(model.parameters.state(), 0.9);
  StepOptions options = how.options;
  options.average = &average;
  if (how.config == dit || how.config == dit_sigma) options.smoothing = 0;
  TrainStep step(model, optimizer, options);
  Trained trained;
  Pass pass{.training = true, .random = Random(5)};
  StepBatch place;
  const int late = how.way == Way::late ? step.most_under_way() - 1 : 0;
  for (int k = 0; k < count; ++k) {
    StepBatch batch = batch_of(model, static_cast<uint64_t>(k));
    if (k >= how.mixed_from) {
      batch.other_labels = batch_of(model, static_cast<uint64_t>(k) + 90).targets;
      batch.lam = 0.1 * (k + 1);
    }
    if (how.bad.contains(k)) batch.images.data<float>()[7] = std::numeric_limits<float>::infinity();
    if (how.one_place && k > 0) {
      place.images.copy_from(batch.images);
      place.targets.copy_from(batch.targets);
    } else if (how.one_place) {
      place = batch.to(how.device);
    }
    if (how.one_place) batch = place;
    const double lr = 0.01 / (k + 1);
    step.start(batch, lr, pass, how.watched_every > 0 && k % how.watched_every == 0);
    if (k >= late) trained.results.push_back(step.finish());
  }
  while (trained.results.size() < count) trained.results.push_back(step.finish());
  for (const NamedTensors& state : {model.parameters.state(), optimizer.state(), average.state()})
    for (const auto& [name, value] : state) trained.numbers.emplace_back(name, value.to(Device::cpu));
  return trained;
}

// `weights`: of a network with batch norms they are not: the bias before one has no gradient but rounding's,
// which Adam makes large.
inline void expect_near(const Trained& a, const Trained& b, double tolerance, bool weights = true) {
  for (size_t k = 0; k < a.results.size(); ++k) {
    CAPTURE(k);
    CHECK(a.results[k].loss == doctest::Approx(b.results[k].loss).epsilon(tolerance));
    CHECK(a.results[k].gradient_norm == doctest::Approx(b.results[k].gradient_norm).epsilon(tolerance));
  }
  for (size_t i = 0; weights && i < a.numbers.size(); ++i) {
    const std::string& name = a.numbers[i].first;
    const Tensor& value = a.numbers[i].second;
    if (!is_float(value.dtype()) || name.starts_with("v.") || name.starts_with("m.")) continue;
    CAPTURE(name);
    CHECK(relative_error(value, b.numbers[i].second) <= tolerance);
  }
}

inline void expect_same(const Trained& a, const Trained& b) {
  for (size_t k = 0; k < a.results.size(); ++k) {
    CAPTURE(k);
    CHECK(a.results[k].trouble == b.results[k].trouble);
    if (a.results[k].trouble) continue;
    CHECK(a.results[k].loss == b.results[k].loss);
    CHECK(a.results[k].correct == b.results[k].correct);
    CHECK(a.results[k].gradient_norm == b.results[k].gradient_norm);
  }
  for (size_t i = 0; i < a.numbers.size(); ++i) {
    CAPTURE(a.numbers[i].first);
    CHECK(a.numbers[i].second.values() == b.numbers[i].second.values());
  }
}

inline std::string notes_of(const Trained& trained) {
  std::string notes;
  for (const StepResult& result : trained.results) notes += result.note;
  return notes;
}

}  // namespace tessera
