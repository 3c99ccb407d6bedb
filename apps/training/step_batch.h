#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/tensor.h"
#include "models/model.h"

namespace tessera {

/// The images and targets of one training step.
struct StepBatch {
  Tensor images;          ///< [B, C, H, W]
  Tensor targets;         ///< labels i64 [B], or a segmenter's masks i64 [B, H, W]
  Tensor other_labels{};  ///< labels of the images mixed in, i64 [B]; undefined: nothing is mixed
  double lam = 1;         ///< weight of `targets` in a mixed batch; other_labels have 1 - lam
  Tensor token_maps{}, token_views{};  ///< a teacher's, on the CPU (see Model::token_targets), or undefined
  Tensor shares{};                     ///< soft targets that the loader made on a GPU, [B, K], or undefined
  Tensor host_labels{};                ///< copy on the CPU of `targets` that are on a GPU, or undefined

  /// A copy on `device`, with f32 images.
  StepBatch to(Device device) const;
  /// A copy whose images and targets have memory of their own.
  StepBatch clone() const;
};

/// Images first .. first + count - 1 of a batch, which go through the model together.
struct MicroBatch {
  int64_t index, first, count;
};

/// Cuts `images` images into micro-batches of `size`, the last one smaller; size 0: all at once. The cut
/// depends on these two numbers alone, so the sum of the gradients has the same bits on any number of
/// threads.
std::vector<MicroBatch> cut_batch(int64_t images, int64_t size);

/// The inputs of Model::training_loss for one micro-batch, as views of the batch's own memory.
TensorMap inputs_of(const Model& model, const StepBatch& batch, const MicroBatch& part);

}  // namespace tessera
