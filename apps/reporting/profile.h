#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/autograd/observe.h"
#include "engine/core/lap_clock.h"

namespace tessera {

// Where a device's time of training steps goes: between start() and stop(), which frame a step, the time from
// one event to the next is put down to the op that the second one ends. What is left of a step is the
// optimizer's. On a GPU an op has the time, too, that its kernels wait for the host to launch them.
class Profile {
 public:
  struct Entry {
    std::string op;
    double forward = 0, backward = 0;  // seconds
    int64_t macs = 0;                  // multiply-accumulates of its forward passes
  };

  explicit Profile(Device device);
  void start();  // of a step
  void stop();

  int64_t steps() const { return steps_; }
  double forward() const { return total(&Entry::forward); }  // seconds of all steps
  double backward() const { return total(&Entry::backward); }
  double rest() const { return rest_; }  // clip, optimizer, and what no op did
  std::vector<Entry> entries() const;    // the longest first

 private:
  double total(double Entry::*phase) const;
  Entry& entry_of(const std::string& op);
  void mark(double& seconds);  // here ends what `seconds` counts

  std::unique_ptr<LapClock> clock_;
  std::vector<double*> marked_;  // what the laps of this step are added to
  bool within_ = false;          // start() and stop()
  std::map<std::string, Entry> entries_;
  double rest_ = 0;
  int64_t steps_ = 0;
  Observer observer_;
};

}  // namespace tessera
