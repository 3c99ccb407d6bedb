#include "apps/training/leaf_arrivals.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace tessera {

LeafArrivals::LeafArrivals(const Tape& tape, const std::vector<Tensor>& leaves,
                           std::function<void(size_t)> arrived)
    : tape_(tape),
      arrived_(std::move(arrived)),
      next_(tape.steps().size()),
      observer_([](const ForwardEvent&) {}, [this](const BackwardEvent& event) { look(event); }) {
  std::unordered_map<int, size_t> leaf_of;
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const int slot = tape.slot_of_known(leaves[leaf]);
    if (slot < 0)
      arrived_(leaf);
    else
      leaf_of.emplace(slot, leaf);
  }
  for (size_t step = 0; step < next_ && !leaf_of.empty(); ++step)
    for (const int slot : tape.steps()[step].inputs)
      if (const auto found = leaf_of.find(slot); found != leaf_of.end()) {
        awaited_.push_back({step, found->second});
        leaf_of.erase(found);
      }
}

// The step that has run now is the last one before next_ whose path is the event's own; steps between them
// had no gradient.
void LeafArrivals::look(const BackwardEvent& event) {
  while (next_ > 0 && &tape_.steps()[--next_].path != &event.path) continue;
  for (; !awaited_.empty() && awaited_.back().step >= next_; awaited_.pop_back())
    arrived_(awaited_.back().leaf);
}

}  // namespace tessera
