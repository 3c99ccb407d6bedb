#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// What joins the ranks: the time from one rank's send to the other's receipt, the time in which a rank hands
/// over one message more, and the bytes a second that leave and reach a rank. Seconds.
struct Network {
  std::string name;
  double latency = 0, gap = 0, bandwidth = 0;
};

/// Networks by their nominal numbers, as their makers and users of MPI on them give them: 1gbe, 10gbe, 25gbe,
/// 100gbe, hdr (InfiniBand, 200 Gbit/s) and ndr (400).
const std::vector<Network>& known_networks();
/// Fails for an unknown name, and suggests a similar one.
Network network_of(const std::string& name);

/// A rank's work in a step, measured without others. Seconds and bytes.
struct RankWork {
  double step = 0;            ///< of its micro-batches alone: forward, backward, the optimizer
  double backward = 0;        ///< of its last micro-batch, in which gradients travel
  double gradient_bytes = 0;  ///< of all parameters
  double add_bandwidth = 0;   ///< bytes of gradients that are added to others in a second
  int64_t buckets = 1, micro_batches = 1;
};

/// The most branches of the tree (sum_tree.h) that a rank's micro-batches make, with so many for each.
int64_t branches_a_rank(int64_t micro_batches, int64_t ranks);

/// The time of the reduction of all gradients over p ranks, where no one computes meanwhile, with c branches
/// a rank, b buckets, S bytes, latency L, gap g, bandwidth W and additions at A bytes a second:
///   2 b (L + (p - 2) g) + (c + 1) (p - 1) / p S / W + (c p - 1) / p S / A
double reduction_seconds(const RankWork& work, const Network& network, int64_t ranks);

/// A step of p ranks that have the same work each. Of the reduction, what fits into the backward pass of the
/// last micro-batch is hidden, but not the last of its b buckets:
///   step + max(reduction - backward, reduction / b)
double step_seconds(const RankWork& work, const Network& network, int64_t ranks);

}  // namespace tessera
