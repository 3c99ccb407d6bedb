#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

// A few numbers of a device on their way to the host, while the host goes on.
class ReadBack {
 public:
  ReadBack() = default;
  virtual ~ReadBack() = default;
  ReadBack(const ReadBack&) = delete;
  ReadBack& operator=(const ReadBack&) = delete;

  // Sets out with what the tensors hold once all work that was begun before is done; they may change again as
  // soon as this returns.
  virtual void start(std::span<const Tensor> tensors) = 0;
  // Waits for the numbers of the last start(), as tensors on the CPU.
  virtual std::vector<Tensor> finish() = 0;
};

std::unique_ptr<ReadBack> make_read_back(Device device);

}  // namespace tessera
