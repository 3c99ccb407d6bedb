// Ranks send one another gradients, losses and counts of correct answers in a step.

#include "apps/training/gpu_peers.h"
#include "apps/training/leaf_arrivals.h"
#include "apps/training/step.h"

namespace tessera {

std::unique_ptr<LeafArrivals> TrainStep::send_early(int64_t part, const Tape& tape) {
  if (watch_) return nullptr;
  if (!mixed_) return gradients_.send_early(part, tape);
  return gradients_.send_early(part, tape, &narrow_leaves_,
                               [this](size_t leaf) { mixed_->widen_gradient(leaf); });
}

// Gives every rank the losses and correct answers of all micro-batches.
void TrainStep::share_results() {
  const auto parts = std::ssize(parts_);
  if (parts < ranks_.size()) {  // a rank that computes none has not seen what a loss is like
    counts_ = largest_of(ranks_, counts_) != 0;
    const DType type = trainable(model_.parameters).front().second.dtype();
    if (!losses_.defined()) losses_ = Tensor::zeros({parts}, type, device_);
  }
  for (Tensor* numbers : {&losses_, &correct_}) {
    if (peers_) {
      gather_on_gpus(*numbers);
      continue;
    }
    const Tensor host = numbers->to(Device::cpu);
    gather(ranks_, host.raw(), host.elements(), size_of(host.dtype()));
    numbers->copy_from(host);
  }
}

void TrainStep::gather_on_gpus(const Tensor& numbers) {
  const auto rows_of = [&](int rank) {
    const Share its = share_of(numbers.dim(0), rank, ranks_.size());
    return numbers.rows(its.first, its.count);
  };
  const Tensor own = rows_of(ranks_.rank());
  peers_->begin();
  for (int other = 0; other < ranks_.size(); ++other) {
    if (other == ranks_.rank()) continue;
    const Tensor theirs = rows_of(other);
    if (own.elements() > 0) peers_->send(other, own.raw(), own.bytes());
    if (theirs.elements() > 0) peers_->receive(other, theirs.raw(), theirs.bytes());
  }
  peers_->end();
}

}  // namespace tessera
