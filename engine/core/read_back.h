#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

/// Copies a few numbers from a device to the host while the host goes on working.
class ReadBack {
 public:
  ReadBack() = default;
  virtual ~ReadBack() = default;
  ReadBack(const ReadBack&) = delete;
  ReadBack& operator=(const ReadBack&) = delete;

  /// Begins to copy the values that the tensors have after all work begun so far. Work begun later may change
  /// the tensors; the copies keep these values.
  virtual void start(std::span<const Tensor> tensors) = 0;
  /// Waits for the values of the last start(); returns them as tensors on the CPU.
  virtual std::vector<Tensor> finish() = 0;
};

/// Fails where the device is missing.
std::unique_ptr<ReadBack> make_read_back(Device device);

}  // namespace tessera
