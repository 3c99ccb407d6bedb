#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/device.h"

namespace tessera {

// Work of the GPU that was recorded once and runs again at the cost of one call (engine/cuda/graph.h).
class Replay {
 public:
  Replay() = default;
  virtual ~Replay() = default;
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // The keys of random draws (Pass::key) that the work was given, each once, in the order of first use.
  virtual const std::vector<uint64_t>& keys() const = 0;

  // Runs the work once more, with other keys in the places of keys(). refresh() calls again, in their order,
  // those functions of the recorded work that take new numbers of the host (the optimizer's step with its
  // rate): the numbers go to the device, and nothing else is done by it.
  virtual void run(std::span<const uint64_t> keys, const std::function<void()>& refresh) = 0;
};

// Records what `work` does on the device, without doing it. Fails for the CPU, which has no such thing, and
// where the work cannot be recorded, as where it reads a number back. All memory that it takes stays its own.
std::unique_ptr<Replay> record_replay(Device device, const std::function<void()>& work);

// Whether f32 products on the GPU may round their factors to 10 bits (TF32), several times faster; off at
// first. Nothing on the CPU.
void allow_tf32(bool allowed);

}  // namespace tessera
