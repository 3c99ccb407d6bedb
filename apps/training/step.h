#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/training/config.h"
#include "apps/training/precision.h"
#include "engine/nn/pass.h"
#include "engine/optim/ema.h"
#include "engine/optim/optimizer.h"
#include "models/model.h"

namespace tessera {

// The optimizer of a config for the trainable ones of `parameters`. Fails for a group that matches none.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const Parameters& parameters);

class DeviceStep;
class NumberWatch;

struct StepOptions {
  // Images that go forward and backward at once; 0: the whole batch, as always where there is a batch norm.
  int64_t micro_batch = 64;
  double clip = 0;       // the largest norm of the whole gradient; 0: any
  double smoothing = 0;  // of the labels
  bool graph = true;     // on a GPU: record a step once, then replay it
  Precision precision = Precision::f32;
  Ema* average = nullptr;  // of the weights: moves on after each step that is taken; outlives the steps
  // On a GPU: targets are shares of the classes, even of batches that are not mixed; so always for a loss by
  // tokens.
  bool shares = false;
};

// A gradient whose square is no float any more would make AdamW's second moment infinite for good.
inline constexpr double largest_gradient_norm = 1e18;

// What a step learns from.
struct StepBatch {
  Tensor images;                       // [B, C, H, W]
  Tensor targets;                      // the labels, i64 [B], or a segmenter's masks
  Tensor other_labels{};               // of the pictures mixed in, i64 [B]; undefined: none are
  double lam = 1;                      // the share of `targets` where there are
  Tensor token_maps{}, token_views{};  // a teacher's, on the CPU (see Model::token_targets); undefined: none
  Tensor shares{};                     // of the classes, where the loader has made them on a GPU; [B, K]
  Tensor host_labels{};                // the labels, where `targets` are on a GPU; undefined: not known

  // In f32, as diagnosis reads it.
  StepBatch to(Device device) const;
  StepBatch clone() const;
};

struct StepResult {
  double loss = 0;  // mean over the batch
  // Images whose largest logit is their own label's, also where another one is mixed in; 0 for a model that
  // gives no classes.
  int64_t correct = 0;
  double gradient_norm = 0;  // of all parameters together, before clipping
  // Why the step was left out: what was not finite, and the first tensor that was not, with its op.
  std::optional<std::string> trouble;
  std::string note{};  // what is worth saying besides, mostly nothing
};

// One step of training: forward, loss and backward in micro-batches, whose activations then stay in cache,
// their gradients added up; clip; the optimizer's step. The micro-batches are cut by their size alone, so the
// bits do not depend on the thread count. Model and optimizer must outlive it.
class TrainStep {
 public:
  TrainStep(Model& model, Optimizer& optimizer, const StepOptions& options);
  ~TrainStep();

  // Where loss or gradient is not finite, or so large that its square
  // is not, no weight, moment or statistic changes, and `trouble` says why.
  StepResult operator()(const StepBatch& batch, double lr, Pass& pass);

  // The same in two halves, so that on a GPU the next step is begun before the last one's result is there: up
  // to most_under_way() are started before the first of them is finished. The results, the weights and all
  // else are those of one step after another. What a batch's tensors hold stays until its step is finished;
  // on a GPU they may hold the next batch as soon as this returns.
  void start(const StepBatch& batch, double lr, Pass& pass);
  StepResult finish();
  int most_under_way() const;

  // The model as steps compute it, with its weights as they are now: where that is in bf16, a copy, which
  // serves until the next step.
  const Model& computing() const;

 private:
  // Forward, loss and backward of all micro-batches, whose gradients add up; ends where the loss is not
  // finite. `watch` is told of what is computed, if there is one.
  StepResult gradients(const StepBatch& batch, Pass& pass, NumberWatch* watch);
  std::string diagnose(const StepBatch& batch, Pass pass);  // by doing all of it again
  struct Started {
    StepBatch batch;
    double lr;
    Pass before;        // the draws
    StepResult result;  // on the CPU
  };
  void begin(const StepBatch& batch, Started step, Pass& pass);
  void explain(const Started& step, StepResult& result);
  void keep_statistics() const;
  void restore_statistics() const;

  StepResult on_cpu(const StepBatch& batch, double lr, Pass& pass);

  Model& model_;
  Optimizer& optimizer_;
  StepOptions options_;
  std::unique_ptr<DeviceStep> on_device_;              // where the parameters are on a GPU
  std::vector<std::pair<Tensor, Tensor>> statistics_;  // of batch norms, and what they were before the step
  std::deque<Started> started_;
};

}  // namespace tessera
