#include "apps/training/step_batch.h"

#include <algorithm>

#include "models/parts/token_labels.h"

namespace tessera {

StepBatch StepBatch::to(Device device) const {
  StepBatch there = *this;
  for (Tensor* tensor : {&there.images, &there.targets, &there.other_labels})
    if (tensor->defined()) *tensor = tensor->to(device);
  if (there.images.dtype() == DType::bf16) there.images = there.images.to(DType::f32);
  return there;
}

StepBatch StepBatch::clone() const {
  StepBatch copy = *this;
  for (Tensor* tensor : {&copy.images, &copy.targets, &copy.other_labels, &copy.shares})
    if (tensor->defined()) *tensor = tensor->clone();
  return copy;
}

std::vector<MicroBatch> cut_batch(int64_t images, int64_t size) {
  if (size <= 0) size = images;
  std::vector<MicroBatch> parts;
  for (int64_t first = 0; first < images; first += size)
    parts.push_back({std::ssize(parts), first, std::min(size, images - first)});
  return parts;
}

TensorMap inputs_of(const Model& model, const StepBatch& batch, const MicroBatch& part) {
  const auto rows = [&](const Tensor& all) { return all.rows(part.first, part.count); };
  TensorMap inputs{{"input", rows(batch.images)}, {"target", rows(batch.targets)}};
  if (batch.token_maps.defined()) {
    const auto [images, patches] = model.token_targets(rows(batch.token_maps), rows(batch.token_views));
    const auto alike = [&](const Tensor& x) { return x.to(batch.images.dtype()).to(batch.images.device()); };
    inputs["target"] = alike(images);
    inputs["aux_target"] = alike(patches);
  }
  if (batch.other_labels.defined()) {
    inputs["target_b"] = rows(batch.other_labels);
    inputs["lam"] = Tensor::from({batch.lam}, {}, DType::f64);
  }
  return inputs;
}

}  // namespace tessera
