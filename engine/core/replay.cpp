#include "engine/core/replay.h"

#include "engine/core/error.h"

namespace tessera {

#ifdef TESSERA_CUDA
std::unique_ptr<Replay> record_on_cuda(const std::function<void()>& work);  // engine/cuda/graph.cpp
void allow_tf32_on_cuda(bool allowed);
#endif

void allow_tf32([[maybe_unused]] bool allowed) {
#ifdef TESSERA_CUDA
  allow_tf32_on_cuda(allowed);
#endif
}

std::unique_ptr<Replay> record_replay(Device device, [[maybe_unused]] const std::function<void()>& work) {
  require(device);
#ifdef TESSERA_CUDA
  if (device == Device::cuda) return record_on_cuda(work);
#endif
  fail("replay: the ", device, " replays no work; --no-graph leaves it out");
}

}  // namespace tessera
