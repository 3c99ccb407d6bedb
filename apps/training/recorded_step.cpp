#include "apps/training/recorded_step.h"

#include <algorithm>

#include "engine/core/error.h"

namespace tessera {

RecordedStep::RecordedStep(Device device, const std::function<std::vector<uint64_t>()>& work) {
  std::vector<uint64_t> drawn;
  graph_ = record_replay(device, [&] { drawn = work(); });
  keys_ = drawn.size();
  for (const uint64_t key : graph_->keys()) {
    const auto at = std::find(drawn.begin(), drawn.end(), key);
    check(at != drawn.end(), "graph: a random key that the pass did not draw");
    order_.push_back(static_cast<size_t>(at - drawn.begin()));
  }
}

void RecordedStep::run(const std::vector<uint64_t>& drawn, const std::function<void()>& refresh) const {
  check(drawn.size() == keys_, "graph: ", drawn.size(), " random keys for a step that draws ", keys_);
  std::vector<uint64_t> keys;
  keys.reserve(order_.size());
  for (const size_t which : order_) keys.push_back(drawn[which]);
  graph_->run(keys, refresh);
}

}  // namespace tessera
