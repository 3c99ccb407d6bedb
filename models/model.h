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
#include "models/task.h"

namespace tessera {

struct SampleOptions;  ///< models/diffusion.h
struct TokenTargets;   ///< models/parts/token_labels.h
using TensorMap = std::map<std::string, Tensor>;

/// The tensor of that name. Fails with the name if there is none.
const Tensor& entry(const TensorMap& tensors, const std::string& name);

/// The loss [] that a training step minimises, and the logits from which it was computed.
struct TrainingLoss {
  Tensor loss, logits;
};

/// The cross entropy of a classifier's logits [B, K] with its targets, in one of the forms that
/// Model::training_loss takes.
Tensor classifier_loss(const Tensor& logits, const TensorMap& inputs, const LossOptions& options);

/// A model of any architecture, as a training loop sees it: build() sets all members.
struct Model {
  Json config;                 ///< as given; models/CONFIG.md lists the keys
  Task task = Task::classify;  ///< the architecture's
  Parameters parameters;       ///< all weights and buffers
  /// Computes logits [B, K] of images [B, C, H, W]; a segmenter's are [B, K, H, W]. A diffusion model answers
  /// for time 0 and class 0, [B, C or 2 C, H, W], which serves to measure its cost and speed only.
  std::function<Tensor(const Tensor& images, Pass& pass)> logits;
  /// Runs everything that the model owns once, an auxiliary head included: the pass by which cost is counted.
  std::function<void(const Tensor& images, Pass& pass)> forward_all;
  /// Computes what a fixture of this model holds, by name, from the fixture's inputs. The result always has
  /// "loss"; a classifier's also has "logits", and its loss is the mean cross entropy of "target".
  std::function<TensorMap(const TensorMap& inputs, Pass& pass)> evaluate;
  /// Computes the loss of a batch or of a part of one (options.rows then is the number of images in the whole
  /// batch) from "input" [B, C, H, W] and the targets. A classifier takes these:
  ///   "target"                        i64 [B], or soft [B, K]
  ///   "target", "target_b", "lam"     i64 [B] both, and [], for Mixup and CutMix
  /// The headers of other networks list theirs. Random numbers come from the pass.
  std::function<TrainingLoss(const TensorMap& inputs, const LossOptions& options, Pass& pass)> training_loss;
  /// Makes the random draws of a training step that need the host, from "input" and "target". The result is
  /// to be added to the inputs of training_loss, which otherwise makes the same draws itself. A step on a GPU
  /// calls this first, because a recorded step must find the draws in fixed buffers. Null if there are none.
  std::function<TensorMap(const TensorMap& inputs, Pass& pass)> draw;
  /// Draws images [B, C, H, W] of the classes `labels` [B] i64 from noise of the pass, without recording a
  /// tape. Null unless the task is Task::diffuse.
  std::function<Tensor(const Tensor& labels, const SampleOptions& options, Pass& pass)> sample;
  /// Computes "target" and "aux_target" of training_loss from a teacher's maps [B, 2, T, h, w] and views
  /// [B, 6] (models/parts/token_labels.h). Null unless the model is trained by token labelling.
  std::function<TokenTargets(const Tensor& maps, const Tensor& views)> token_targets;

  int64_t image_size() const;
  int64_t in_channels() const;
  int64_t num_classes() const;
};

struct BuildOptions {
  uint64_t seed = 0;  ///< of the initial weights
  DType dtype = DType::f32;
  Device device = Device::cpu;
};

/// Builds the model that `config` describes ("arch" names its architecture), its weights initialised as in
/// its paper. Fails, giving the reason, for an unknown architecture or key, for a missing key, and for keys
/// that contradict each other.
Model build(const Json& config, const BuildOptions& options = {});

/// Builds the same network in another type, with a converted copy of the weights.
Model copy_as(const Model& model, DType dtype);

struct Cost {
  int64_t parameters = 0;  ///< trainable numbers
  int64_t macs = 0;        ///< multiply-accumulates for one image in evaluation mode
};

/// Counts what a config costs. A dry run computes no numbers, so a model of any size takes a moment. The
/// multiply-accumulates are those of
///   a matrix product [m, k] x [k, n]  m k n, attention's two products included
///   a convolution                     the number of outputs times the inputs of each; for a transposed one,
///                                     the number of inputs times the outputs of each
///   a layer norm, a batch norm        one, two an element
/// and none for biases, additions, elementwise products, softmax, activations, pooling, resizing, rotary
/// positions and decay. The SPT and LSA paper counts in this way, whole; with `answer_only`, what a CPU
/// computes for a pass that wants the answer only is counted.
Cost cost_of(const Json& config, bool answer_only = false);

}  // namespace tessera
