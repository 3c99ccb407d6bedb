#include "engine/core/device.h"

#include <ostream>

#include "engine/core/error.h"

namespace tessera {

std::string_view name(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

Device parse_device(std::string_view text) {
  if (text == "cpu") return Device::cpu;
  if (text == "cuda") return Device::cuda;
  fail("device: unknown '", text, "'; there are cpu and cuda");
}

std::ostream& operator<<(std::ostream& out, Device device) { return out << name(device); }

}  // namespace tessera
