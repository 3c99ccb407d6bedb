#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/device.h"

namespace tessera {

/// Work of a GPU that was recorded once and can run again at the cost of one call (engine/cuda/graph.h).
class Replay {
 public:
  Replay() = default;
  virtual ~Replay() = default;
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// The keys of random draws (Pass::key) that the recorded work uses, each once, in the order of first use.
  virtual const std::vector<uint64_t>& keys() const = 0;

  /// Runs the work once more, with `keys` in place of keys(). refresh() must call again, in their order,
  /// those functions of the recorded work that read numbers of the host (the optimizer's step reads its
  /// learning rate): their new numbers are copied to the device, and their kernels are not launched.
  virtual void run(std::span<const uint64_t> keys, const std::function<void()>& refresh) = 0;
};

/// Records what `work` does on the device, without running it. The memory that `work` takes belongs to the
/// recording from then on. Fails for the CPU, and for work that cannot be recorded, such as reading a number
/// back to the host.
std::unique_ptr<Replay> record_replay(Device device, const std::function<void()>& work);

/// Lets f32 matrix products on the GPU round their factors to 10 bits (TF32), which is several times faster.
/// Off at first; no effect on the CPU. Holds for the process.
void allow_tf32(bool allowed);

}  // namespace tessera
