#pragma once

#include <span>
#include <vector>

#include "apps/training/sum_tree.h"
#include "engine/core/device_peers.h"
#include "engine/core/tensor.h"

namespace tessera {

/// Adds up over the ranks what each has summed over the branches of its own micro-batches, bucket by bucket,
/// while it computes the next one: every element is sent to the one rank that adds it up, which sends the
/// result to all. The order of the additions is the tree's. Nothing is allocated after the first exchange.
///
/// Between GPUs (`peers`) all is queued on the device in this same order, and nothing waits for the host.
class GradientExchange {
 public:
  /// Of sums of numbers of one type, in buckets that begin where the former one ends. With `peers`, which
  /// must outlive the exchange, sums and total lie on the GPU, else on the CPU.
  GradientExchange(Ranks& ranks, const std::vector<Share>& buckets, DType dtype,
                   DevicePeers* peers = nullptr);

  /// Begins the exchange of sums over `parts` micro-batches, of which each rank has its share_of().
  void begin(int64_t parts);
  int64_t started() const { return static_cast<int64_t>(started_); }  ///< buckets
  /// Sends the next bucket off. own[i] is the sum over this rank's branch i, whole; what is in
  /// the bucket is complete. The memory is written to, and must stay until finish().
  void start(std::span<const Tensor> own);
  void move_on();  ///< does what can be done without waiting
  /// Waits for all buckets, which must have been started, and returns the total. [n]
  const Tensor& finish();

 private:
  struct Bucket {
    Share elements, mine;   ///< of a sum; what this rank adds up
    size_t received = 0;    ///< where the others' sums of `mine` lie in received_, in bytes
    int64_t transfers = 0;  ///< the number of the last one of its sums
  };

  std::byte* bytes_of(const Tensor& sum, int64_t element) const;
  Share share_in(const Bucket& bucket, int rank) const;  ///< elements that a rank adds up
  void plan(int64_t parts);
  void add_up(const Bucket& bucket);
  int64_t send(int to, const void* bytes, size_t count, Channel channel);
  int64_t receive(int from, void* bytes, size_t count, Channel channel);

  Ranks& ranks_;
  DevicePeers* peers_;  ///< null on a CPU
  size_t element_bytes_;
  std::vector<Bucket> buckets_;
  int64_t elements_ = 0, parts_ = -1;
  std::vector<Branch> all_;    ///< branches, of all ranks in turn
  std::vector<size_t> first_;  ///< each rank's first one of them; the last: their number
  std::vector<std::pair<size_t, size_t>> additions_;
  std::vector<std::byte*> places_;  ///< of the sums over all_, for the bucket at hand
  std::vector<std::byte*> own_;     ///< this rank's sums
  Tensor received_, total_;
  size_t started_ = 0, added_ = 0;  ///< buckets
};

}  // namespace tessera
