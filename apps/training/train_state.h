#pragma once

#include <limits>

#include "apps/training/log_marks.h"
#include "apps/training/step.h"
#include "engine/core/random.h"
#include "engine/io/json.h"

namespace tessera {

/// The progress of a run. With the weights, the optimizer's moments and the average it is all that is needed
/// to resume with the same bits.
struct Position {
  int64_t epoch = 0;  ///< epochs that are finished
  int64_t step = 0;   ///< steps done in the current epoch
  /// Sums over the steps of the current epoch that were taken.
  int64_t images = 0, correct = 0;
  double loss_sum = 0, norm_sum = 0;
  int64_t skipped = 0;           ///< steps of this epoch that were left out, as a number was not finite
  int64_t skipped_in_a_row = 0;  ///< up to the last step, also across epochs
  double lr = 0;                 ///< of the last step
  /// Over the finished epochs.
  double best_score = -1, last_score = -1;  ///< of Evaluation::score()
  int64_t best_epoch = 0;
  LogMark watch;         ///< of watch.csv
  Random::State random;  ///< of the stream for dropout and drop path

  void add(const StepResult& step, int64_t step_images, double step_lr);
  void next_epoch();

  /// Means over the current epoch's steps that were taken; NaN if there are none.
  double loss() const { return loss_sum / static_cast<double>(step - skipped); }
  double gradient_norm() const { return norm_sum / static_cast<double>(step - skipped); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(images); }
};

Json to_json(const Position& position);
Position read_position(const Json& json, const std::string& where);

/// Appends `tensors`, their names with `prefix` before them, so that one file holds those of several owners:
/// "model.head.bias".
void append_with_prefix(NamedTensors& to, const std::string& prefix, const NamedTensors& tensors);
/// The tensors of one owner again, their names without the prefix.
NamedTensors with_prefix(const NamedTensors& all, const std::string& prefix);

}  // namespace tessera
