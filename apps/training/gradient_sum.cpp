#include "apps/training/gradient_sum.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>

#include "apps/training/gradient_exchange.h"
#include "apps/training/leaf_arrivals.h"
#include "engine/autograd/accumulate_kernels.h"
#include "engine/core/dispatch.h"

namespace tessera {

namespace {

// a += b
void add_to(const Tensor& a, const Tensor& b) {
  dispatch(a, "gradient sum", [&]<class Dev, class T>() {
    AccumulateKernels<Dev>::template add<T>(a.data<T>(), b.data<T>(), a.elements());
  });
}

Tensor zero_gradient(const Tensor& leaf) {
  Leaf& of = *leaf.leaf();
  of.stale = false;
  if (!of.grad.defined()) of.grad = Tensor::zeros(leaf.shape(), leaf.dtype(), leaf.device());
  of.grad.fill(0);
  return leaf.grad();
}

bool wants_fast_sums() {
  const char* wanted = std::getenv("TESSERA_RANK_SUMS");
  return wanted && wanted == std::string("fast");
}

}  // namespace

GradientSum::GradientSum(std::vector<Tensor> leaves, Ranks& ranks, int64_t bucket_elements,
                         DevicePeers* peers)
    : leaves_(std::move(leaves)),
      present_(leaves_.size()),
      settled_(leaves_.size()),
      ranks_(ranks),
      peers_(peers),
      any_order_(peers && wants_fast_sums()) {
  for (const Tensor& leaf : leaves_) {
    first_.push_back(elements_);
    elements_ += leaf.elements();
  }
  if (ranks_.alone()) return;
  std::vector<Share> buckets;
  for (size_t leaf = leaves_.size(), end = leaf; leaf-- > 0;) {
    const int64_t last = end < leaves_.size() ? first_[end] : elements_;
    if (leaf > 0 && last - first_[leaf] < bucket_elements) continue;
    buckets.push_back({first_[leaf], last - first_[leaf]});
    bucket_first_.push_back(end = leaf);
  }
  exchange_ = std::make_unique<GradientExchange>(ranks_, std::move(buckets), leaves_.front().dtype(), peers_);
  said_.resize(static_cast<size_t>(ranks_.size()) * leaves_.size());
}

GradientSum::~GradientSum() = default;

void GradientSum::begin(int64_t parts) {
  parts_ = parts;
  planned_ = -1;
  own_ = share_of(parts, ranks_);
  unused_.insert(unused_.end(), sums_.begin(), sums_.end());
  branches_.clear();
  sums_.clear();
  present_.assign(leaves_.size(), false);
  if (!has_all()) exchange_->begin(parts);
}

std::unique_ptr<LeafArrivals> GradientSum::send_early(int64_t part, const Tape& tape,
                                                      const std::vector<Tensor>* read,
                                                      std::function<void(size_t)> widen) {
  if (has_all() || part + 1 != own_.end() || leaves_.front().device() != Device::cpu) return nullptr;
  plan(part);
  widen_ = std::move(widen);
  return std::make_unique<LeafArrivals>(tape, read ? *read : leaves_, [this](size_t leaf) {
    settle(leaf);
    start_ready();
  });
}

void GradientSum::add(int64_t part) {
  if (planned_ != part) plan(part);
  for (size_t leaf = 0; leaf < leaves_.size(); ++leaf)
    if (!settled_[leaf]) settle(leaf);
  widen_ = nullptr;
}

// The branches that end with this micro-batch: they are added to its gradients, and where that is not the
// whole sum, the result takes the memory of one of them.
void GradientSum::plan(int64_t part) {
  const bool whole = has_all() && part + 1 == parts_;
  planned_ = part;
  settled_.assign(leaves_.size(), false);
  added_.clear();
  Branch last{part, 1};
  while (!branches_.empty() && (whole || joins(branches_.back(), last))) {
    added_.push_back(sums_.back());
    last = {branches_.back().first, branches_.back().count + last.count};
    branches_.pop_back();
    sums_.pop_back();
  }
  kept_ = whole ? Tensor() : added_.empty() ? new_sum() : added_.back();
  for (const Tensor& sum : added_)
    if (!kept_.defined() || sum.raw() != kept_.raw()) unused_.push_back(sum);
  if (whole) return;
  branches_.push_back(last);
  sums_.push_back(kept_);
}

Tensor GradientSum::new_sum() {
  if (unused_.empty()) return Tensor::zeros({elements_}, leaves_.front().dtype(), leaves_.front().device());
  const Tensor sum = unused_.back();
  unused_.pop_back();
  return sum;
}

Tensor GradientSum::of_leaf(const Tensor& sum, size_t leaf) const {
  return sum.rows(first_[leaf], leaves_[leaf].elements());
}

void GradientSum::settle(size_t leaf) {
  settled_[leaf] = true;
  if (widen_) widen_(leaf);
  Tensor gradient = leaves_[leaf].grad();
  if (!gradient.defined() && !present_[leaf]) {  // as no gradient moves no weight, zeros stand for it
    if (kept_.defined()) of_leaf(kept_, leaf).fill(0);
    return;
  }
  if (!gradient.defined()) gradient = zero_gradient(leaves_[leaf]);
  present_[leaf] = true;
  for (const Tensor& sum : added_) add_to(gradient, of_leaf(sum, leaf));
  if (kept_.defined()) of_leaf(kept_, leaf).copy_from(gradient);
}

void GradientSum::start_ready() {
  for (auto bucket = static_cast<size_t>(exchange_->started()); bucket < bucket_first_.size(); ++bucket) {
    const size_t first = bucket_first_[bucket],
                 end = bucket == 0 ? leaves_.size() : bucket_first_[bucket - 1];
    for (size_t leaf = first; leaf < end; ++leaf)
      if (!settled_[leaf]) return exchange_->move_on();
    exchange_->start(sums_);
  }
  exchange_->move_on();
}

void GradientSum::finish(bool recording) {
  if (has_all()) return;
  agree_on_presence(recording);
  const Tensor sum = any_order_ ? total_in_any_order() : total();
  for (size_t leaf = 0; leaf < leaves_.size(); ++leaf)
    if (present_[leaf]) leaves_[leaf].grad().copy_from(of_leaf(sum, leaf));
}

Tensor GradientSum::total() {
  const bool on_host = peers_ == nullptr && leaves_.front().device() != Device::cpu;
  const std::vector<Tensor>& sums = on_host ? sums_on_host() : sums_;
  while (exchange_->started() < std::ssize(bucket_first_)) exchange_->start(sums);
  return exchange_->finish();
}

Tensor GradientSum::total_in_any_order() {
  if (sums_.empty()) {  // this rank has no micro-batch
    sums_.push_back(new_sum());
    sums_.back().fill(0);
  }
  for (size_t i = 1; i < sums_.size(); ++i) add_to(sums_.front(), sums_[i]);
  peers_->add_up(sums_.front().raw(), elements_, sums_.front().dtype());
  return sums_.front();
}

const std::vector<Tensor>& GradientSum::sums_on_host() {
  while (host_.size() < sums_.size()) host_.push_back(Tensor::empty({elements_}, leaves_.front().dtype()));
  host_.resize(sums_.size());
  for (size_t i = 0; i < sums_.size(); ++i) host_[i].copy_from(sums_[i]);
  return host_;
}

// A leaf that had a gradient on any rank has one on all.
void GradientSum::agree_on_presence(bool known) {
  const size_t count = leaves_.size();
  if (!known) {
    std::ranges::copy(present_, said_.begin() + static_cast<std::ptrdiff_t>(count) * ranks_.rank());
    gather(ranks_, said_.data(), ranks_.size(), count);
  }
  for (size_t i = 0; i < said_.size(); ++i)
    if (said_[i] && !present_[i % count]) {
      zero_gradient(leaves_[i % count]);
      present_[i % count] = true;
    }
}

}  // namespace tessera
