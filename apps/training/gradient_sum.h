#pragma once

#include <vector>

#include "apps/training/ranks.h"
#include "engine/core/tensor.h"

namespace tessera {

/// The sum of the gradients of a batch's micro-batches, in an order that depends on their number n alone:
///   sum of [0, n) = sum of [0, m) + sum of [m, n),  m the largest power of two below n
/// So it has the same bits whichever ranks compute the micro-batches. Each rank sends its sums over whole
/// branches of this tree, every element to the one rank that adds it up, which sends the result to all.
///
/// With one micro-batch, which every rank computes, nothing is sent, copied or added.
class GradientSum {
 public:
  /// The gradients are those of `leaves`, all of one type on one device.
  GradientSum(std::vector<Tensor> leaves, Ranks& ranks);

  /// Begins the sum over `parts` micro-batches; this rank adds its share_of() them, in their order, or the
  /// only one.
  void begin(int64_t parts);
  /// Takes the leaves' gradients as those of this micro-batch alone: call zero_grad() before each.
  void add(int64_t part);
  /// Makes the leaves' gradients the sum over all micro-batches of all ranks.
  void finish();

 private:
  /// The sum over micro-batches [first, first + count), a branch of the tree.
  struct Branch {
    int64_t first, count;
    Tensor sum{};  ///< of all leaves, one after another. [n]
  };

  /// Whether the branch that begins at `first` is the second half of one whose first half is `before`.
  static bool joins(const Branch& before, int64_t first, int64_t count) {
    return before.count == count && before.first % (2 * count) == 0 && before.first + count == first;
  }
  /// The largest branches that a share is made of.
  static std::vector<Branch> branches_of(Share share);
  /// Adds consecutive branches up, into the first one.
  static Tensor sum_of(const std::vector<Branch>& branches);

  /// Whether this rank has all micro-batches; a single one is computed by every rank.
  bool has_all() const { return ranks_.alone() || parts_ == 1; }
  void plan(int64_t part);
  void settle(size_t leaf);  ///< does with one leaf's gradient what plan() has found
  Tensor new_sum();
  Tensor of_leaf(const Tensor& sum, size_t leaf) const;
  std::vector<Branch> trade_branches();
  Tensor trade_totals(const Tensor& own);

  std::vector<Tensor> leaves_;
  std::vector<int64_t> first_;  ///< of each leaf's elements in a sum
  std::vector<bool> present_;   ///< whether the leaf has had a gradient in this step
  int64_t elements_ = 0;
  Ranks& ranks_;

  int64_t parts_ = 0;
  Share own_;
  std::vector<Branch> branches_;  ///< of this rank so far
  std::vector<Tensor> added_;     ///< sums to be added to the gradients of the part at hand, in this order
  Tensor kept_;                   ///< where the result is kept; undefined: in the leaves
  std::vector<Tensor> unused_;    ///< memory of former branches
  Tensor total_;                  ///< on the CPU. [n]
};

}  // namespace tessera
