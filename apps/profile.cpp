#include "apps/profile.h"

#include <algorithm>

namespace tessera {

Profile::Profile()
    : observer_([this](const Event& event) { entries_[std::string(event.op.name)].forward += watch_.lap(); },
                [this](const BackwardEvent& event) {
                  entries_[std::string(event.op.name)].backward += watch_.lap();
                }) {}

void Profile::start() { watch_.lap(); }

void Profile::stop() {
  rest_ += watch_.lap();
  ++steps_;
}

double Profile::total(double Entry::*phase) const {
  double seconds = 0;
  for (const auto& [op, entry] : entries_) seconds += entry.*phase;
  return seconds;
}

std::vector<Profile::Entry> Profile::entries() const {
  std::vector<Entry> all;
  for (const auto& [op, entry] : entries_) all.push_back({op, entry.forward, entry.backward});
  std::sort(all.begin(), all.end(),
            [](const Entry& a, const Entry& b) { return a.forward + a.backward > b.forward + b.backward; });
  return all;
}

}  // namespace tessera
