#include "apps/ranks/scale_model.h"

#include <algorithm>

#include "apps/training/sum_tree.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"

namespace tessera {

const std::vector<Network>& known_networks() {
  static const std::vector<Network> networks{
      {"1gbe", 50e-6, 5e-6, 1e9 / 8},     {"10gbe", 20e-6, 2e-6, 10e9 / 8},
      {"25gbe", 10e-6, 1e-6, 25e9 / 8},   {"100gbe", 5e-6, 0.5e-6, 100e9 / 8},
      {"hdr", 1.5e-6, 0.2e-6, 200e9 / 8}, {"ndr", 1.2e-6, 0.15e-6, 400e9 / 8},
  };
  return networks;
}

Network network_of(const std::string& name) {
  std::vector<std::string> names;
  for (const Network& each : known_networks()) {
    if (each.name == name) return each;
    names.push_back(each.name);
  }
  fail("bench: unknown network '", name, "'", did_you_mean(name, names));
}

int64_t branches_a_rank(int64_t micro_batches, int64_t ranks) {
  size_t most = 0;
  for (int64_t rank = 0; rank < ranks; ++rank)
    most = std::max(most, branches_of({rank * micro_batches, micro_batches}).size());
  return static_cast<int64_t>(most);
}

double reduction_seconds(const RankWork& work, const Network& network, int64_t ranks) {
  if (ranks < 2) return 0;
  const auto p = static_cast<double>(ranks),
             c = static_cast<double>(branches_a_rank(work.micro_batches, ranks)),
             b = static_cast<double>(work.buckets);
  return 2 * b * (network.latency + (p - 2) * network.gap) +
         (c + 1) * (p - 1) / p * work.gradient_bytes / network.bandwidth +
         (c * p - 1) / p * work.gradient_bytes / work.add_bandwidth;
}

double step_seconds(const RankWork& work, const Network& network, int64_t ranks) {
  const double reduction = reduction_seconds(work, network, ranks);
  return work.step + std::max(reduction - work.backward, reduction / static_cast<double>(work.buckets));
}

}  // namespace tessera
