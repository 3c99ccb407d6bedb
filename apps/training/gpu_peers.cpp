#include "apps/training/gpu_peers.h"

#include <unistd.h>

#include <set>
#include <string>
#include <vector>

namespace tessera {

std::unique_ptr<DevicePeers> join_gpus(Ranks& ranks, Device device) {
  if (ranks.alone() || device == Device::cpu) return nullptr;
  const std::string place = place_of_gpu();
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::vector<std::string> all = gather(ranks, place.empty() ? "" : host + (" " + place));
  const std::set<std::string> different(all.begin(), all.end());
  if (different.size() < all.size() || different.contains("")) return nullptr;
  const std::string key = broadcast(ranks, ranks.is_first() ? new_peers_key() : "");
  return join_peers(key, ranks.rank(), ranks.size());
}

}  // namespace tessera
