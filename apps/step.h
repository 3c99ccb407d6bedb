#pragma once

#include <memory>

#include "apps/config.h"
#include "engine/nn/pass.h"
#include "engine/optim/optimizer.h"
#include "models/model.h"

namespace tessera {

// The optimizer of a config for the trainable ones of `parameters`. Fails for a group that matches none.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const Parameters& parameters);

struct StepOptions {
  // Images that go forward and backward at once; 0: the whole batch, as always where there is a batch norm.
  int64_t micro_batch = 64;
  double clip = 0;       // the largest norm of the whole gradient; 0: any
  double smoothing = 0;  // of the labels
};

struct StepResult {
  double loss = 0;      // mean over the batch
  int64_t correct = 0;  // images whose largest logit is their label's; 0 for a model that gives no classes
  double gradient_norm = 0;  // of all parameters together, before clipping
};

// One step of training: forward, loss and backward in micro-batches, whose activations then stay in cache,
// their gradients added up; clip; the optimizer's step. The micro-batches are cut by their size alone, so the
// bits do not depend on the thread count. Model and optimizer must outlive it.
class TrainStep {
 public:
  TrainStep(Model& model, Optimizer& optimizer, const StepOptions& options);

  // images [B, C, H, W], labels [B] i64. Fails before any weight changes if loss or gradient is not finite.
  StepResult operator()(const Tensor& images, const Tensor& labels, double lr, Pass& pass);

 private:
  Model& model_;
  Optimizer& optimizer_;
  StepOptions options_;
};

// How many rows of logits [B, K] have their largest value, the first of equals, at their label.
int64_t count_correct(const Tensor& logits, const Tensor& labels);

}  // namespace tessera
