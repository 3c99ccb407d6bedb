#include "engine/core/device_peers.h"

#include "engine/core/device.h"
#include "engine/core/error.h"

namespace tessera {

// engine/cuda/nccl_peers.cpp, in a build with CUDA
std::string cuda_place();
std::string new_cuda_peers_key();
std::unique_ptr<DevicePeers> join_cuda_peers(const std::string& key, int rank, int size);

std::string place_of_gpu() {
  if constexpr (has_cuda) return cuda_place();
  return "";
}

std::string new_peers_key() {
  if constexpr (has_cuda) return new_cuda_peers_key();
  fail("ranks: this build has no CUDA");
}

std::unique_ptr<DevicePeers> join_peers([[maybe_unused]] const std::string& key, [[maybe_unused]] int rank,
                                        [[maybe_unused]] int size) {
  if constexpr (has_cuda) return join_cuda_peers(key, rank, size);
  fail("ranks: this build has no CUDA");
}

}  // namespace tessera
