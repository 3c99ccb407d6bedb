#include "apps/reporting/profile.h"

#include <algorithm>

namespace tessera {

Profile::Profile(Device device, MachineRates rates)
    : rates_(rates),
      clock_(make_lap_clock(device)),
      observer_(
          [this](const ForwardEvent& event) {
            Entry& entry = entry_of(std::string(event.op.name));
            mark(entry.forward);
            add_work(entry, event.macs, event.bytes);
            if (within_) entry.macs += event.macs;
          },
          [this](const BackwardEvent& event) {
            Entry& entry = entry_of(std::string(event.op.name));
            mark(entry.backward);
            add_work(entry, 2 * event.macs, event.bytes);
          }) {}

void Profile::add_work(Entry& entry, int64_t macs, int64_t bytes) const {
  if (!within_) return;
  entry.bytes += bytes;
  const double products = rates_.flops > 0 ? 2 * static_cast<double>(macs) / rates_.flops : 0,
               memory = rates_.bytes > 0 ? static_cast<double>(bytes) / rates_.bytes : 0;
  entry.floor += std::max(products, memory);
}

Profile::Entry& Profile::entry_of(const std::string& op) {
  return entries_.try_emplace(op, Entry{op}).first->second;
}

void Profile::mark(double& seconds) {
  if (!within_) return;
  clock_->mark();
  marked_.push_back(&seconds);
}

void Profile::start() {
  within_ = true;
  clock_->mark();
}

void Profile::stop() {
  mark(rest_);
  const std::vector<double> laps = clock_->laps();
  for (size_t i = 0; i < laps.size(); ++i) *marked_[i] += laps[i];
  marked_.clear();
  within_ = false;
  ++steps_;
}

double Profile::total(double Entry::*phase) const {
  double seconds = 0;
  for (const auto& [op, entry] : entries_) seconds += entry.*phase;
  return seconds;
}

std::vector<Profile::Entry> Profile::entries() const {
  std::vector<Entry> all;
  for (const auto& [op, entry] : entries_) all.push_back(entry);
  std::sort(all.begin(), all.end(),
            [](const Entry& a, const Entry& b) { return a.forward + a.backward > b.forward + b.backward; });
  return all;
}

}  // namespace tessera
