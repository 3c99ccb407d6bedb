#pragma once

#include "apps/training/event_file.h"
#include "apps/training/step.h"
#include "data/loader.h"
#include "engine/io/json.h"

namespace tessera {

/// Writes a run's numbers for TensorBoard: each step's loss, gradient norm and learning rate under train/,
/// each epoch's numbers under epoch/ and validation/ and its weights' histograms under weights/, the layers
/// of a watched step under watch/, once a session a sheet of augmented training pictures, and once a run its
/// config as hyperparameters and the model's graph.
class TensorBoard {
 public:
  /// Makes an event file in the run folder. `step`: steps that are done. Events of later steps in older
  /// files, from before the run was resumed, become void.
  TensorBoard(const std::filesystem::path& folder, int64_t step, const Normalisation& normalisation)
      : file_(folder, step), normalisation_(normalisation) {}

  /// At the beginning of a run. `config` is its config, with the model's whole one.
  void begin(const Json& config);
  void step(int64_t step, const StepResult& result, double lr, const Batch& batch);
  /// `details`: those of the "epoch" event in events.jsonl.
  void epoch(int64_t step, const Json& details, const Parameters& weights);

 private:
  void layers(int64_t step, const std::vector<LayerFigures>& layers);

  EventFile file_;
  Normalisation normalisation_;
  bool shown_ = false;  ///< whether the pictures are written
};

}  // namespace tessera
