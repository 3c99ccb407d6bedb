#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/core/device.h"

namespace tessera {

/// The numbers that a training step or an evaluation computes with. Weights, the gradient's norm and the
/// optimizer's moments are f32 in any case. tf32: matrix products on a GPU round their factors to 10 bits of
/// mantissa. bf16: activations, products and each micro-batch's gradients are bf16, sums and losses f32.
enum class Precision : uint8_t { f32, tf32, bf16 };

std::string_view name(Precision precision);  ///< "tf32"

class Ranks;

/// Where and how a run computes. It is no part of the config: a run may be resumed on another device, and on
/// another number of ranks.
struct Computing {
  Device device = Device::cpu;
  bool graph = true;  ///< on a GPU: replay a recorded step
  Precision precision = Precision::f32;
  Ranks* ranks = nullptr;  ///< the processes that compute the run together; null: this one alone
};

/// The precision of that name, "f32", "tf32" or "bf16". Fails for any other.
Precision precision_of(const std::string& text);

/// A line that says to take bf16 where the processor multiplies in it at least 1.5 times as fast as in f32,
/// `times` of them; empty otherwise, on a GPU, and in any precision but f32.
std::string bf16_advice(const Computing& computing, double times);

}  // namespace tessera
