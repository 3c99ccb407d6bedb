#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/autograd/observe.h"
#include "engine/core/lap_clock.h"

namespace tessera {

// The most operations and bytes that the machine does in a second; 0 stands for a rate that is not known.
struct MachineRates {
  double flops = 0, bytes = 0;
};

// Measures the time of training steps by operation. start() and stop() enclose a step; in between, the time
// since the last event is charged to the operation that just ended. The rest of a step is the optimizer's. On
// a GPU an operation's time includes waiting for the host to launch its kernels.
//
// An operation's floor is the time that its multiply-accumulates or its bytes take at the machine's rates,
// whichever is longer. Forward, the inputs are read and the output is written; backward, at least the
// gradient of the output is read and those of the inputs are written, and there are twice as many
// multiply-accumulates.
class Profile {
 public:
  struct Entry {
    std::string op;
    double forward = 0, backward = 0;  // seconds
    double floor = 0;                  // seconds, forward and backward
    int64_t macs = 0, bytes = 0;       // multiply-accumulates of its forward passes; all bytes that it moves
  };

  explicit Profile(Device device, MachineRates rates = {});
  void start();  // begins a step
  void stop();

  int64_t steps() const { return steps_; }
  double forward() const { return total(&Entry::forward); }  // seconds of all steps
  double backward() const { return total(&Entry::backward); }
  double rest() const { return rest_; }  // clipping, the optimizer, and everything else outside of operations
  std::vector<Entry> entries() const;    // sorted by time, the longest first

 private:
  double total(double Entry::*phase) const;
  Entry& entry_of(const std::string& op);
  void mark(double& seconds);  // the time since the last mark is added to `seconds`
  void add_work(Entry& entry, int64_t macs, int64_t bytes) const;

  MachineRates rates_;
  std::unique_ptr<LapClock> clock_;
  std::vector<double*> marked_;  // for each lap of this step, the sum it is added to
  bool within_ = false;          // between start() and stop()
  std::map<std::string, Entry> entries_;
  double rest_ = 0;
  int64_t steps_ = 0;
  Observer observer_;
};

}  // namespace tessera
