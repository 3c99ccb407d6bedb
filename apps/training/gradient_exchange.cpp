#include "apps/training/gradient_exchange.h"

#include <utility>

#include "engine/autograd/accumulate_kernels.h"
#include "engine/core/device_backend.h"
#include "engine/core/dispatch.h"
#include "engine/core/error.h"

namespace tessera {

GradientExchange::GradientExchange(Ranks& ranks, const std::vector<Share>& buckets, DType dtype,
                                   DevicePeers* peers)
    : ranks_(ranks), peers_(peers), element_bytes_(size_of(dtype)) {
  for (const Share& elements : buckets) {
    buckets_.push_back({.elements = elements, .mine = {}});
    buckets_.back().mine = share_in(buckets_.back(), ranks_.rank());
    elements_ += elements.count;
  }
  total_ = Tensor::empty({elements_}, dtype, peers_ ? Device::cuda : Device::cpu);
}

std::byte* GradientExchange::bytes_of(const Tensor& sum, int64_t element) const {
  return static_cast<std::byte*>(sum.raw()) + static_cast<size_t>(element) * element_bytes_;
}

Share GradientExchange::share_in(const Bucket& bucket, int rank) const {
  const Share share = share_of(bucket.elements.count, rank, ranks_.size());
  return {bucket.elements.first + share.first, share.count};
}

void GradientExchange::begin(int64_t parts) {
  if (parts != parts_) plan(parts);
  started_ = added_ = 0;
}

void GradientExchange::plan(int64_t parts) {
  parts_ = parts;
  all_.clear();
  first_.clear();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    first_.push_back(all_.size());
    for (const Branch& branch : branches_of(share_of(parts, rank, ranks_.size()))) all_.push_back(branch);
  }
  first_.push_back(all_.size());
  additions_ = additions_of(all_);
  places_.resize(all_.size());
  const auto own = static_cast<size_t>(ranks_.rank());
  own_.resize(first_[own + 1] - first_[own]);
  int64_t received = 0;
  for (Bucket& bucket : buckets_) {
    bucket.received = static_cast<size_t>(received) * element_bytes_;
    received += bucket.mine.count * static_cast<int64_t>(all_.size() - own_.size());
  }
  received_ = Tensor::empty({received}, total_.dtype(), total_.device());
}

int64_t GradientExchange::send(int to, const void* bytes, size_t count, Channel channel) {
  if (!peers_) return ranks_.send(to, bytes, count, channel);
  peers_->send(to, bytes, count);
  return 0;
}

int64_t GradientExchange::receive(int from, void* bytes, size_t count, Channel channel) {
  if (!peers_) return ranks_.receive(from, bytes, count, channel);
  peers_->receive(from, bytes, count);
  return 0;
}

void GradientExchange::start(std::span<const Tensor> own) {
  check(own.size() == own_.size(), "gradients: ", own.size(), " sums of ", own_.size(), " branches");
  Bucket& bucket = buckets_.at(started_++);
  auto* into = static_cast<std::byte*>(received_.raw()) + bucket.received;
  for (size_t i = 0; i < own.size(); ++i) own_[i] = bytes_of(own[i], 0);
  const size_t mine = static_cast<size_t>(bucket.mine.count) * element_bytes_;
  if (peers_) peers_->begin();
  for (int other = 0; other < ranks_.size(); ++other) {
    if (other == ranks_.rank()) continue;
    const Share theirs = share_in(bucket, other);
    const size_t their_bytes = static_cast<size_t>(theirs.count) * element_bytes_;
    for (const Tensor& sum : own)
      if (their_bytes > 0)
        bucket.transfers = send(other, bytes_of(sum, theirs.first), their_bytes, Channel::sums);
    for (size_t i = first_[static_cast<size_t>(other)]; i < first_[static_cast<size_t>(other) + 1]; ++i) {
      if (mine > 0) bucket.transfers = receive(other, into, mine, Channel::sums);
      into += mine;
    }
  }
  if (peers_) peers_->end();
}

void GradientExchange::move_on() {
  for (const int64_t done = peers_ ? 0 : ranks_.done();
       added_ < started_ && buckets_[added_].transfers <= done;)
    add_up(buckets_[added_++]);
}

void GradientExchange::add_up(const Bucket& bucket) {
  const auto own = static_cast<size_t>(ranks_.rank());
  const size_t bytes = static_cast<size_t>(bucket.mine.count) * element_bytes_,
               first = static_cast<size_t>(bucket.mine.first) * element_bytes_;
  auto* other = static_cast<std::byte*>(received_.raw()) + bucket.received;
  for (size_t i = 0; i < places_.size(); ++i) {
    const bool is_own = i >= first_[own] && i < first_[own + 1];
    places_[i] = is_own ? own_[i - first_[own]] + first : std::exchange(other, other + bytes);
  }
  dispatch(total_, "gradient sum", [&]<class Dev, class T>() {
    for (const auto& [into, from] : additions_)
      AccumulateKernels<Dev>::template add<T>(reinterpret_cast<T*>(places_[into]),
                                              reinterpret_cast<const T*>(places_[from]), bucket.mine.count);
  });
  std::byte* result = bytes_of(total_, bucket.mine.first);
  backend(total_.device()).copy(result, places_.front(), bytes);
  if (peers_) peers_->begin();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) continue;
    const Share theirs = share_in(bucket, rank);
    if (bytes > 0) send(rank, result, bytes, Channel::totals);
    if (theirs.count > 0)
      receive(rank, bytes_of(total_, theirs.first), static_cast<size_t>(theirs.count) * element_bytes_,
              Channel::totals);
  }
  if (peers_) peers_->end();
}

const Tensor& GradientExchange::finish() {
  check(started_ == buckets_.size(), "gradients: bucket ", started_, " of ", buckets_.size(),
        " was not started");
  while (added_ < buckets_.size()) {
    if (!peers_) ranks_.wait(buckets_[added_].transfers);
    add_up(buckets_[added_++]);
  }
  if (!peers_) ranks_.wait();
  return total_;
}

}  // namespace tessera
