#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/core/device.h"

namespace tessera {

// What a training step or an evaluation computes in; weights, gradients' norm and the optimizer are f32 in
// any case. tf32: a GPU's products round their factors to 10 bits. bf16: activations, products and gradients
// are bf16, sums and losses f32.
enum class Precision : uint8_t { f32, tf32, bf16 };

std::string_view name(Precision precision);  // "tf32"

// What a run is computed by; the config does not hold it.
struct Computing {
  Device device = Device::cpu;
  bool graph = true;  // on a GPU: replay a recorded step
  Precision precision = Precision::f32;
};

// The precision of that name. Fails for any other.
Precision precision_of(const std::string& text);

}  // namespace tessera
