#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/core/replay.h"

namespace tessera {

/// The work of a training step on a GPU, recorded once as a graph and replayed for each batch with the random
/// keys of that batch.
class RecordedStep {
 public:
  /// Records work(), which runs nothing and returns the random keys that it drew. Fails where the work cannot
  /// be recorded, as where it reads a number back.
  RecordedStep(Device device, const std::function<std::vector<uint64_t>()>& work);

  /// Runs the work with the keys `drawn`, as many as it drew when it was recorded and in that order.
  /// refresh(): see Replay::run.
  void run(const std::vector<uint64_t>& drawn, const std::function<void()>& refresh) const;

 private:
  std::unique_ptr<Replay> graph_;
  size_t keys_;                ///< that the work draws
  std::vector<size_t> order_;  ///< the graph's key i is number order_[i] of those drawn
};

}  // namespace tessera
