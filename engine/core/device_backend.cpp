#include "engine/core/device_backend.h"

#include "engine/core/error.h"
#include "engine/core/lap_clock.h"
#include "engine/core/read_back.h"
#include "engine/core/replay.h"

namespace tessera {

namespace {

DeviceBackend& ready(Device device) {
  DeviceBackend& own = backend(device);
  own.make_ready();
  return own;
}

}  // namespace

DeviceBackend& backend(Device device) {
  if (device == Device::cpu) return cpu_backend();
  if constexpr (has_cuda) return cuda_backend();
  fail("device: this build has no CUDA; build with -DTESSERA_CUDA=ON where the CUDA ",
       "toolkit is installed, or use --device cpu");
}

void require(Device device) { ready(device); }

std::unique_ptr<LapClock> make_lap_clock(Device device) { return ready(device).make_lap_clock(); }

std::unique_ptr<ReadBack> make_read_back(Device device) { return ready(device).make_read_back(); }

std::unique_ptr<Replay> record_replay(Device device, const std::function<void()>& work) {
  return ready(device).record_replay(work);
}

void allow_tf32(bool allowed) {
  if constexpr (has_cuda) cuda_backend().allow_tf32(allowed);
}

}  // namespace tessera
