#pragma once

#include "apps/training/event_file.h"
#include "apps/training/step.h"
#include "data/loader.h"
#include "engine/io/json.h"

namespace tessera {

// A run as TensorBoard shows it: each step's loss, gradient norm and learning rate under train/, each epoch's
// numbers under epoch/ and validation/, and once a session pictures as training sees them.
class TensorBoard {
 public:
  // An event file of the run folder. `step`: steps that are done; events of later ones, from before the run
  // was broken off, are void.
  TensorBoard(const std::filesystem::path& folder, int64_t step, const Normalisation& normalisation)
      : file_(folder, step), normalisation_(normalisation) {}

  void step(int64_t step, const StepResult& result, double lr, const Batch& batch);
  // `details` as the run's own event of the epoch has them.
  void epoch(int64_t step, const Json& details);

 private:
  EventFile file_;
  Normalisation normalisation_;
  bool shown_ = false;  // the pictures
};

}  // namespace tessera
