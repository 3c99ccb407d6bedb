#pragma once

#include <memory>

#include "apps/training/ranks.h"
#include "engine/core/device.h"
#include "engine/core/device_peers.h"

namespace tessera {

/// Joins the GPUs of all ranks, so that gradients travel between them and not over the host's memory. Null on
/// every rank where there is one rank, the device is no GPU, a build has no NCCL, or two ranks share a GPU.
std::unique_ptr<DevicePeers> join_gpus(Ranks& ranks, Device device);

}  // namespace tessera
