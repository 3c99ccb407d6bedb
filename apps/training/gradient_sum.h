#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "apps/training/ranks.h"
#include "apps/training/sum_tree.h"
#include "engine/core/device_peers.h"
#include "engine/core/tensor.h"

namespace tessera {

class GradientExchange;
class LeafArrivals;
class Tape;

/// The sum of the gradients of a batch's micro-batches, in the order of sum_tree.h. So it has the same bits
/// whichever ranks compute the micro-batches. Each rank sends its sums over whole branches of the tree
/// (GradientExchange), in buckets of leaves that lie together, the last ones first: those whose gradients a
/// backward pass completes first.
///
/// With one micro-batch, which every rank computes, nothing is sent, copied or added.
class GradientSum {
 public:
  /// The gradients are those of `leaves`, all of one type on one device. Those on GPUs travel between these
  /// where `peers` joins them (it must outlive the sum), else over the host's memory. With
  /// TESSERA_RANK_SUMS=fast in the environment, NCCL adds them up in its own order: the sums have other bits
  /// on other numbers of ranks then.
  GradientSum(std::vector<Tensor> leaves, Ranks& ranks, int64_t bucket_elements = usual_bucket,
              DevicePeers* peers = nullptr);
  ~GradientSum();

  static constexpr int64_t usual_bucket = 1 << 19;  ///< elements of a bucket, or one leaf that has more

  /// Begins the sum over `parts` micro-batches; this rank adds its share_of() them, in their order, or the
  /// only one.
  void begin(int64_t parts);
  /// Call it where micro-batch `part` is about to be read back from `tape`, and keep the result meanwhile:
  /// the gradients of this rank's last micro-batch are then sent off as they are completed. Null where there
  /// is nothing to send. Where the tape has read copies of the leaves (bf16 ones), `read` are these in the
  /// leaves' order, and widen(i) makes the gradient of leaf i from that of its copy, once in this
  /// micro-batch.
  std::unique_ptr<LeafArrivals> send_early(int64_t part, const Tape& tape,
                                           const std::vector<Tensor>* read = nullptr,
                                           std::function<void(size_t)> widen = {});
  /// Takes the leaves' gradients as those of this micro-batch alone: call zero_grad() before each.
  void add(int64_t part);
  /// Makes the leaves' gradients the sum over all micro-batches of all ranks. Where a graph records it, the
  /// ranks do not ask each other which leaves have gradients: they are those of the step before.
  void finish(bool recording = false);

 private:
  /// Whether this rank has all micro-batches; a single one is computed by every rank.
  bool has_all() const { return ranks_.alone() || parts_ == 1; }
  void plan(int64_t part);
  void settle(size_t leaf);  ///< does with one leaf's gradient what plan() has found
  void start_ready();        ///< the exchange of the buckets whose leaves are settled
  const std::vector<Tensor>& sums_on_host();
  Tensor total();
  Tensor total_in_any_order();
  void agree_on_presence(bool known);
  Tensor new_sum();
  Tensor of_leaf(const Tensor& sum, size_t leaf) const;

  std::vector<Tensor> leaves_;
  std::vector<int64_t> first_;         ///< of each leaf's elements in a sum
  std::vector<bool> present_;          ///< whether the leaf has had a gradient in this step
  std::function<void(size_t)> widen_;  ///< makes a leaf's gradient of the part at hand; empty: it is there
  std::vector<bool> settled_;          ///< whether the gradient of the part at hand is settled
  int64_t elements_ = 0;
  Ranks& ranks_;
  DevicePeers* peers_;
  bool any_order_;  ///< NCCL adds up

  int64_t parts_ = 0, planned_ = -1;  ///< micro-batches; the one that plan() was called for last
  Share own_;
  std::vector<Branch> branches_;  ///< of this rank so far, and their sums. [n] each
  std::vector<Tensor> sums_;
  std::vector<Tensor> added_;   ///< sums to be added to the gradients of the part at hand, in this order
  Tensor kept_;                 ///< where the result is kept; undefined: in the leaves
  std::vector<Tensor> unused_;  ///< memory of former branches

  std::vector<Tensor> host_;                    ///< copies of sums_ that lie on a GPU
  std::vector<size_t> bucket_first_;            ///< leaf of each bucket, in the order in which they are sent
  std::unique_ptr<GradientExchange> exchange_;  ///< null where this rank is alone
  std::vector<uint8_t> said_;                   ///< the present leaves of each rank
};

}  // namespace tessera
