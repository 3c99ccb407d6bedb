#pragma once

// What the optimizer's next step would change, parameter by parameter.

#include <filesystem>
#include <string>

#include "apps/training/config.h"
#include "engine/core/named_tensors.h"
#include "models/model.h"

namespace tessera {

// An optimizer as it stands before a step.
struct NextStep {
  OptimizerConfig optimizer = {};
  double lr = 0, clip = 0;  // of this step; clip 0: the gradient is not clipped
  double highest_lr = 0;    // that the run's schedule reaches; 0: the rate does not change
  NamedTensors state = {};  // Optimizer::state(); empty: before the first step
  std::string words = {};   // which one it is, for people
};

// A new AdamW with the learning rate 1e-4 and the weight decay 0.05: where there is no run.
NextStep default_step();

// That of the run in the folder at `path`, or in the folder of the checkpoint at `path`: its config's
// optimizer with the moments of state.safetensors, at the learning rate of the last step. default_step()
// where there is no such run. Fails for a run whose files cannot be read.
NextStep next_step_of(const std::filesystem::path& path);

// {now, highest}: the learning rate of the step and the highest of its run, which a page needs to judge how
// far the step goes.
Json learning_rate_of(const NextStep& step);

// The change of each trainable parameter of the model that has a gradient, by this step along the gradients
// that the parameters have: {name: {weight_rms, update_rms}}, RMS being sqrt(mean of squares). The model
// stays as it is.
Json updates_of(const Model& model, const NextStep& step);

}  // namespace tessera
