#include "apps/training/batch_norm.h"

#include <algorithm>

#include "engine/ops/batch_norm.h"
#include "engine/ops/elementwise.h"

namespace tessera {

namespace {

// Copies between the tensors and the elements of `all` that are theirs, one tensor after another.
void copy(const std::vector<Tensor>& tensors, const Tensor& all, bool to_all) {
  int64_t first = 0;
  for (const Tensor& tensor : tensors) {
    const Tensor part = all.reshape({-1}).rows(first, tensor.elements());
    if (to_all)
      part.copy_from(tensor);
    else
      tensor.copy_from(part);
    first += tensor.elements();
  }
}

}  // namespace

bool has_batch_norm(const Model& model) {
  return std::any_of(model.parameters.begin(), model.parameters.end(),
                     [](const Parameter& p) { return p.statistic; });
}

RunningStatistics::RunningStatistics(const Model& model, Ranks& ranks) : ranks_(ranks) {
  for (const Parameter& p : model.parameters)
    if (p.statistic) statistics_.push_back(p.value);
}

void RunningStatistics::begin(int64_t parts) {
  if (statistics_.empty()) return;
  int64_t elements = 0;
  for (const Tensor& each : statistics_) elements += each.elements();
  const Tensor& like = statistics_.front();
  if (!moves_.defined() || moves_.dim(0) != parts) {
    before_ = Tensor::empty({elements}, like.dtype(), like.device());
    moves_ = Tensor::empty({parts, elements}, like.dtype(), like.device());
  }
  copy(statistics_, before_, true);
}

void RunningStatistics::begin_part() const {
  for (const Tensor& each : statistics_) each.fill(0);
}

void RunningStatistics::end_part(int64_t part) const {
  if (!statistics_.empty()) copy(statistics_, row(part), true);
}

void RunningStatistics::finish() {
  if (statistics_.empty()) return;
  if (!ranks_.alone()) {
    const Tensor host = moves_.to(Device::cpu);
    gather(ranks_, host.raw(), host.dim(0), static_cast<size_t>(host.dim(1)) * size_of(host.dtype()));
    moves_.copy_from(host);
  }
  Tensor running = before_;
  for (int64_t part = 0; part < moves_.dim(0); ++part)
    running = add(scale(running, 1 - BatchNormOptions().momentum), row(part).reshape(running.shape()));
  copy(statistics_, running, false);
}

}  // namespace tessera
