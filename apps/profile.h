#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench.h"
#include "engine/autograd/observe.h"

namespace tessera {

// Where the time of training steps goes: while one lives, the time between two events is put down to the op
// that the second one ends. What is left of a step is the optimizer's, once start() and stop() have framed
// it.
class Profile {
 public:
  struct Entry {
    std::string op;
    double forward = 0, backward = 0;  // seconds
  };

  Profile();
  void start();  // of a step
  void stop();

  int64_t steps() const { return steps_; }
  double forward() const { return total(&Entry::forward); }  // seconds of all steps
  double backward() const { return total(&Entry::backward); }
  double rest() const { return rest_; }  // clip, optimizer, and what no op did
  std::vector<Entry> entries() const;    // the longest first

 private:
  double total(double Entry::*phase) const;

  std::map<std::string, Entry, std::less<>> entries_;
  Stopwatch watch_;
  double rest_ = 0;
  int64_t steps_ = 0;
  Observer observer_;
};

}  // namespace tessera
