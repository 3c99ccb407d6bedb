#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "apps/step.h"
#include "engine/core/replay.h"
#include "engine/optim/mixed.h"

namespace tessera {

// A training step whose numbers stay on the device: the whole batch at once, loss, gradient norm and correct
// answers read back once at its end. From the third step on batches of one shape are replays of a graph.
class DeviceStep {
 public:
  DeviceStep(Model& model, Optimizer& optimizer, const StepOptions& options);

  // As TrainStep's, on a batch on the CPU; `trouble` is empty text where it is to be set.
  StepResult operator()(const StepBatch& batch, double lr, Pass& pass);

 private:
  void compute_in_bf16();
  void take(const StepBatch& batch);  // into the step's own memory
  void compute(Pass& pass);           // forward, loss, backward
  void update(double lr);             // clip, the optimizer's step
  void record(double lr, const Pass& pass);
  void replay(double lr, Pass& pass);
  StepResult read();

  Model& model_;
  std::optional<Model> narrow_;  // the same in bf16, which then computes
  std::optional<MixedWeights> mixed_;
  Optimizer& optimizer_;
  StepOptions options_;
  Tensor images_, labels_;
  Tensor soft_;  // [B, K], the targets from the first mixed batch on: lam is another each time
  Tensor loss_, correct_, norm_;  // [1] of the model's type; [1] i64; [2] f64
  bool counts_ = false;           // whether the model gives logits of classes
  int64_t steps_ = 0;             // of this shape
  std::unique_ptr<Replay> graph_;
  uint64_t draws_ = 0;            // keys that a step draws
  std::vector<size_t> drawn_as_;  // for each of the graph's keys, which draw it is
};

}  // namespace tessera
