#include "apps/training/step_inputs.h"

#include "models/parts/token_labels.h"

namespace tessera {

namespace {

// The labels or masks; the host's copy, where there is one, is read without waiting for the GPU.
const Tensor& host_targets(const StepBatch& batch) {
  return batch.host_labels.defined() ? batch.host_labels : batch.targets;
}

// lam at an image's own label, 1 - lam at that of the image mixed in. [B, K]
Tensor soft_targets(const StepBatch& batch, const Shape& shape) {
  const Tensor targets = Tensor::zeros(shape);
  const auto add = [&](const Tensor& labels, double share) {
    const std::vector<int64_t> classes = labels.integers();
    for (size_t i = 0; i < classes.size(); ++i)
      targets.data<float>()[static_cast<int64_t>(i) * shape[1] + classes[i]] += static_cast<float>(share);
  };
  const bool mixed = batch.other_labels.defined();
  add(host_targets(batch), mixed ? batch.lam : 1);
  if (mixed) add(batch.other_labels, 1 - batch.lam);
  return targets;
}

}  // namespace

StepInputs::StepInputs(const Model& model, Device device, DType dtype, bool shares)
    : model_(model), device_(device), dtype_(dtype), shares_(shares) {}

bool StepInputs::set(const StepBatch& batch, const std::vector<MicroBatch>& parts) {
  batch_ = batch;
  if (device_ == Device::cpu) return true;
  const bool on_device = batch.images.device() != Device::cpu;
  const bool soft = shares_ || model_.token_targets || batch.other_labels.defined() ||
                    batch.token_maps.defined() || soft_.defined();
  const bool fit = fits(on_device, soft, parts.size());
  if (!fit) make_buffers(on_device, soft, parts.size());
  if (!on_device) {
    images_.copy_from(batch.images);
    labels_.copy_from(batch.targets);
  }
  if (soft) fill_soft_targets();
  return fit;
}

// A batch that was made on the device is read where it lies.
bool StepInputs::fits(bool on_device, bool soft, size_t parts) const {
  const Tensor &images = batch_.images, &labels = batch_.targets;
  return images_.defined() && images.shape() == images_.shape() && labels.shape() == labels_.shape() &&
         labels.dtype() == labels_.dtype() && soft == soft_.defined() && parts == drawn_.size() &&
         batch_.token_maps.defined() == patches_.defined() &&
         (!batch_.shares.defined() || batch_.shares.raw() == soft_.raw()) &&
         (!on_device || (images.raw() == images_.raw() && labels.raw() == labels_.raw()));
}

void StepInputs::make_buffers(bool on_device, bool soft, size_t parts) {
  const auto buffer = [&](const Tensor& like) {
    return on_device ? like : Tensor::empty(like.shape(), like.dtype(), device_);
  };
  images_ = buffer(batch_.images);
  labels_ = buffer(batch_.targets);
  if (soft)
    soft_ = batch_.shares.defined()
                ? batch_.shares
                : Tensor::empty({labels_.dim(0), model_.num_classes()}, images_.dtype(), device_);
  patches_ = Tensor();
  drawn_.assign(parts, {});
}

void StepInputs::fill_soft_targets() {
  if (batch_.token_maps.defined()) {
    const TokenTargets teacher = model_.token_targets(batch_.token_maps, batch_.token_views);
    if (!patches_.defined()) patches_ = Tensor::empty(teacher.patches.shape(), images_.dtype(), device_);
    soft_.copy_from(teacher.images.to(soft_.dtype()));
    patches_.copy_from(teacher.patches.to(patches_.dtype()));
  } else if (!batch_.shares.defined()) {
    soft_.copy_from(soft_targets(batch_, soft_.shape()).to(soft_.dtype()));
  }
}

void StepInputs::draw(const MicroBatch& part, Pass& pass) {
  if (device_ == Device::cpu || !model_.draw) return;
  const auto rows = [&](const Tensor& all) { return all.rows(part.first, part.count); };
  const TensorMap inputs{{"input", rows(batch_.images)}, {"target", rows(host_targets(batch_))}};
  for (const auto& [name, value] : model_.draw(inputs, pass)) {
    Tensor& buffer = drawn_[static_cast<size_t>(part.index)][name];
    if (!buffer.defined()) buffer = Tensor::empty(value.shape(), value.dtype(), device_);
    buffer.copy_from(value);
  }
}

TensorMap StepInputs::of(const MicroBatch& part) const {
  TensorMap inputs;
  if (device_ == Device::cpu) {
    inputs = inputs_of(model_, batch_, part);
  } else {
    const auto rows = [&](const Tensor& all) { return all.rows(part.first, part.count); };
    inputs = drawn_[static_cast<size_t>(part.index)];
    inputs["input"] = rows(images_);
    inputs["target"] = rows(soft_.defined() ? soft_ : labels_);
    if (patches_.defined()) inputs["aux_target"] = rows(patches_);
  }
  if (dtype_ != DType::bf16) return inputs;
  // The images of a diffusion model are its targets too, and stay as they are.
  for (const char* name : {"input", "target", "aux_target"})
    if (const auto found = inputs.find(name); found != inputs.end() && is_float(found->second.dtype()))
      if (!model_.sample || found->first != "input") found->second = found->second.to(DType::bf16);
  return inputs;
}

Tensor StepInputs::targets_of(const MicroBatch& part) const {
  return (device_ == Device::cpu ? batch_.targets : labels_).rows(part.first, part.count);
}

}  // namespace tessera
