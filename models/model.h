#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/io/json.h"
#include "engine/nn/parameters.h"
#include "engine/nn/pass.h"
#include "engine/ops/loss.h"

namespace tessera {

struct SampleOptions;  // models/diffusion.h
struct TokenTargets;   // models/parts/token_labels.h
using TensorMap = std::map<std::string, Tensor>;

// The tensor of that name; fails, naming it, where there is none.
const Tensor& entry(const TensorMap& tensors, const std::string& name);

// What a training step goes down, [], and the logits that it came from.
struct TrainingLoss {
  Tensor loss, logits;
};

// The loss of a classifier's logits [B, K] by whichever targets are given (see Model::training_loss).
Tensor classifier_loss(const Tensor& logits, const TensorMap& inputs, const LossOptions& options);

// A model of any architecture, as a trainer sees it.
struct Model {
  Json config;            // as given; reference/README.md lists the keys
  Parameters parameters;  // all of its weights and buffers
  // Images [B, C, H, W] -> logits [B, K].
  std::function<Tensor(const Tensor& images, Pass& pass)> logits;
  // One pass through all that the model owns, an auxiliary head too: what its cost is counted on.
  std::function<void(const Tensor& images, Pass& pass)> forward_all;
  // Everything that a fixture of this model compares, by name, "loss" among it, from the file's inputs
  // ("input" and what else it holds). A classifier's: logits, and the mean cross entropy of "target".
  std::function<TensorMap(const TensorMap& inputs, Pass& pass)> evaluate;
  // The loss of a batch, or of a part of one (options.rows: images of the whole), from its "input" [B, C, H,
  // W] and its targets, which for a classifier are
  //   "target"                        i64 [B], or soft [B, K]
  //   "target", "target_b", "lam"     i64 [B] both and [], for Mixup and CutMix
  // and for other networks what their headers say, beside "target". What it draws comes from the pass.
  std::function<TrainingLoss(const TensorMap& inputs, const LossOptions& options, Pass& pass)> training_loss;
  // What a training step draws on the host, besides keys, from "input" and "target": more inputs of
  // training_loss, which draws them itself where they are not given. So a step on a GPU takes them from
  // memory that each step writes anew. Null for most.
  std::function<TensorMap(const TensorMap& inputs, Pass& pass)> draw;
  // A diffusion model's: images [B, C, H, W] of the classes `labels` [B] i64, from noise that the pass draws.
  // Nothing is recorded. Null for all others, which tells them apart: a diffusion model's logits are what it
  // answers at time 0 for class 0, [B, C or 2 C, H, W], there to be counted and timed, not to be read.
  std::function<Tensor(const Tensor& labels, const SampleOptions& options, Pass& pass)> sample;
  // Of a model that is trained by token labelling: "target" and "aux_target" of training_loss from a
  // teacher's maps [B, 2, T, h, w] and views [B, 6] of them, as models/parts/token_labels.h has them. Null
  // for all others.
  std::function<TokenTargets(const Tensor& maps, const Tensor& views)> token_targets;

  int64_t image_size() const;
  int64_t in_channels() const;
  int64_t num_classes() const;
};

struct BuildOptions {
  uint64_t seed = 0;  // of the initial weights
  DType dtype = DType::f32;
  Device device = Device::cpu;
};

// The model that `config` describes ("arch" names it), with fresh weights as its paper draws them. Fails for
// an unknown architecture or key, a missing one, or a combination that makes no sense, saying why.
Model build(const Json& config, const BuildOptions& options = {});

// The same network in another type, with a copy of the weights.
Model copy_as(const Model& model, DType dtype);

// The architectures that build() knows.
std::vector<std::string> architectures();

struct Cost {
  int64_t parameters = 0;  // learned numbers
  int64_t macs = 0;        // multiply-accumulates for one image in evaluation, by the rule of SIZES.md
};

// What a config costs, found by a dry run: no number is computed, a model of any size takes a moment.
Cost cost_of(const Json& config);

}  // namespace tessera
