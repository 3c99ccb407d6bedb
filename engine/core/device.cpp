#include "engine/core/device.h"

#include <ostream>

#include "engine/core/error.h"
#ifdef TESSERA_CUDA
#include "engine/core/memory.h"
#endif

namespace tessera {

std::string_view name(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

Device parse_device(std::string_view text) {
  if (text == "cpu") return Device::cpu;
  if (text == "cuda") return Device::cuda;
  fail("device: unknown '", text, "'; there are cpu and cuda");
}

std::ostream& operator<<(std::ostream& out, Device device) { return out << name(device); }

void require(Device device) {
#ifdef TESSERA_CUDA
  if (device == Device::cuda) Memory<Cuda>::zero(nullptr, 0);  // makes the device ready, or says why not
#else
  check(device == Device::cpu, "device: this build has no CUDA; build with -DTESSERA_CUDA=ON where the CUDA ",
        "toolkit is installed, or use --device cpu");
#endif
}

}  // namespace tessera
