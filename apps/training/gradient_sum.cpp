#include "apps/training/gradient_sum.h"

#include <algorithm>
#include <utility>

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

// A leaf that had a gradient on any rank has one on all.
void agree_on_presence(Ranks& ranks, const std::vector<Tensor>& leaves, std::vector<bool>& present) {
  const size_t count = leaves.size();
  std::vector<uint8_t> said(static_cast<size_t>(ranks.size()) * count);
  std::copy(present.begin(), present.end(), said.begin() + static_cast<std::ptrdiff_t>(count) * ranks.rank());
  gather(ranks, said.data(), ranks.size(), count);
  for (size_t i = 0; i < said.size(); ++i)
    if (said[i] && !present[i % count]) {
      zero_gradient(leaves[i % count]);
      present[i % count] = true;
    }
}

}  // namespace

GradientSum::GradientSum(std::vector<Tensor> leaves, Ranks& ranks)
    : leaves_(std::move(leaves)), present_(leaves_.size()), ranks_(ranks) {
  for (const Tensor& leaf : leaves_) {
    first_.push_back(elements_);
    elements_ += leaf.elements();
  }
}

std::vector<GradientSum::Branch> GradientSum::branches_of(Share share) {
  std::vector<Branch> branches;
  for (int64_t part = share.first; part < share.end(); ++part) {
    Branch last{part, 1};
    for (; !branches.empty() && joins(branches.back(), last.first, last.count); branches.pop_back())
      last = {branches.back().first, 2 * last.count};
    branches.push_back(last);
  }
  return branches;
}

Tensor GradientSum::sum_of(const std::vector<Branch>& branches) {
  std::vector<Branch> left;
  const auto join = [&](const Branch& second) {
    const Branch first = left.back();
    left.pop_back();
    add_to(first.sum, second.sum);
    return Branch{first.first, first.count + second.count, first.sum};
  };
  for (Branch next : branches) {
    while (!left.empty() && joins(left.back(), next.first, next.count)) next = join(next);
    left.push_back(next);
  }
  while (left.size() > 1) {
    const Branch last = left.back();
    left.pop_back();
    left.push_back(join(last));
  }
  return left.front().sum;
}

void GradientSum::begin(int64_t parts) {
  parts_ = parts;
  own_ = share_of(parts, ranks_);
  for (const Branch& branch : branches_) unused_.push_back(branch.sum);
  branches_.clear();
  present_.assign(leaves_.size(), false);
}

void GradientSum::add(int64_t part) {
  plan(part);
  for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) settle(leaf);
}

// The branches that end with this micro-batch: they are added to its gradients, and where that is not the
// whole sum, the result takes the memory of one of them.
void GradientSum::plan(int64_t part) {
  const bool whole = has_all() && part + 1 == parts_;
  added_.clear();
  Branch last{part, 1};
  for (; !branches_.empty() && (whole || joins(branches_.back(), last.first, last.count));
       branches_.pop_back()) {
    added_.push_back(branches_.back().sum);
    last = {branches_.back().first, branches_.back().count + last.count};
  }
  kept_ = whole ? Tensor() : added_.empty() ? new_sum() : added_.back();
  for (const Tensor& sum : added_)
    if (!kept_.defined() || sum.raw() != kept_.raw()) unused_.push_back(sum);
  if (whole) return;
  last.sum = kept_;
  branches_.push_back(last);
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

void GradientSum::finish() {
  if (has_all()) return;
  agree_on_presence(ranks_, leaves_, present_);
  const Tensor total = trade_totals(sum_of(trade_branches()));
  for (size_t leaf = 0; leaf < leaves_.size(); ++leaf)
    if (present_[leaf]) leaves_[leaf].grad().copy_from(of_leaf(total, leaf));
}

// Sends the others what they add up of this rank's branches. Returns all branches, in the elements that this
// rank adds up.
std::vector<GradientSum::Branch> GradientSum::trade_branches() {
  for (Branch& branch : branches_) branch.sum = branch.sum.to(Device::cpu);
  const auto bytes = [](const Tensor& t) { return t.elements() * static_cast<int64_t>(size_of(t.dtype())); };
  const Share mine = share_of(elements_, ranks_);
  std::vector<Branch> all;
  for (int other = 0; other < ranks_.size(); ++other) {
    if (other == ranks_.rank()) {
      for (const Branch& branch : branches_)
        all.push_back({branch.first, branch.count, branch.sum.rows(mine.first, mine.count)});
      continue;
    }
    const Share theirs = share_of(elements_, other, ranks_.size());
    for (const Branch& branch : branches_) {
      const Tensor sent = branch.sum.rows(theirs.first, theirs.count);
      ranks_.send(other, sent.raw(), static_cast<size_t>(bytes(sent)));
    }
    for (Branch branch : branches_of(share_of(parts_, other, ranks_.size()))) {
      branch.sum = Tensor::empty({mine.count}, leaves_.front().dtype());
      ranks_.receive(other, branch.sum.raw(), static_cast<size_t>(bytes(branch.sum)));
      all.push_back(branch);
    }
  }
  ranks_.wait();
  return all;
}

// Sends the others the elements that this rank has added up. Returns all. [n]
Tensor GradientSum::trade_totals(const Tensor& own) {
  if (!total_.defined()) total_ = Tensor::empty({elements_}, own.dtype());
  const Share mine = share_of(elements_, ranks_);
  total_.rows(mine.first, mine.count).copy_from(own);
  gather(ranks_, total_.raw(), elements_, size_of(own.dtype()));
  return total_;
}

}  // namespace tessera
