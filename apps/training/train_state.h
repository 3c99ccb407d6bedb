#pragma once

#include <limits>

#include "apps/training/step.h"
#include "engine/core/random.h"
#include "engine/io/json.h"

namespace tessera {

// Where a run stands, besides its weights and moments: with those, all that is needed to go on exactly.
struct Position {
  int64_t epoch = 0;  // finished ones
  int64_t step = 0;   // done in this epoch
  // Of this epoch so far.
  int64_t images = 0, correct = 0;    // of the steps that were taken
  double loss_sum = 0, norm_sum = 0;  // likewise
  int64_t skipped = 0;                // steps left out, as something was not finite
  int64_t skipped_in_a_row = 0;       // up to the last step; over epochs too
  double lr = 0;                      // of the last step
  // Of the finished epochs.
  double best_score = -1, last_score = -1;  // of Evaluation::score()
  int64_t best_epoch = 0;
  Random::State random;  // of dropout and drop path

  void add(const StepResult& step, int64_t step_images, double step_lr);
  void next_epoch();

  // Means over the steps that were taken; NaN where there are none.
  double loss() const { return loss_sum / static_cast<double>(step - skipped); }
  double gradient_norm() const { return norm_sum / static_cast<double>(step - skipped); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(images); }
};

Json to_json(const Position& position);
Position read_position(const Json& json, const std::string& where);

// Tensors of several owners in one list: "model.head.bias".
void append_with_prefix(NamedTensors& to, const std::string& prefix, const NamedTensors& tensors);
NamedTensors with_prefix(const NamedTensors& all, const std::string& prefix);  // the prefix taken off

}  // namespace tessera
