#pragma once

#include <vector>

#include "apps/training/step_batch.h"
#include "engine/nn/pass.h"

namespace tessera {

/// Gives each micro-batch of a step the inputs of Model::training_loss. On the CPU they are views of the
/// batch. On a GPU they lie in buffers that every step of the same shape uses again, so that a recorded step
/// finds them where it was recorded, and all that differs from step to step is data: mixed labels are soft
/// targets, and what the model draws on the host (Model::draw) is copied there before the step.
class StepInputs {
 public:
  /// `dtype`: what the model computes in. `shares`: always give soft targets on a GPU (see StepOptions).
  StepInputs(const Model& model, Device device, DType dtype, bool shares);

  /// Takes the batch of the next step. Returns false where its inputs lie in other memory than those of the
  /// batch before, so that a recorded step does not fit any more.
  bool set(const StepBatch& batch, const std::vector<MicroBatch>& parts);
  /// Makes the model's draws for one micro-batch, if it draws on the host. On the CPU training_loss does
  /// that.
  void draw(const MicroBatch& part, Pass& pass);

  TensorMap of(const MicroBatch& part) const;
  Tensor targets_of(const MicroBatch& part) const;  ///< what correct answers are counted by

 private:
  bool fits(bool on_device, bool soft, size_t parts) const;
  void make_buffers(bool on_device, bool soft, size_t parts);
  void fill_soft_targets();

  const Model& model_;
  Device device_;
  DType dtype_;
  bool shares_;
  StepBatch batch_;               ///< of this step
  Tensor images_, labels_;        ///< where the step reads them
  Tensor soft_;                   ///< [B, K], the targets if they are soft: mixed, a teacher's, or for tokens
  Tensor patches_;                ///< [B, N, K], a teacher's targets of the tokens, or undefined
  std::vector<TensorMap> drawn_;  ///< for each micro-batch
};

}  // namespace tessera
