#pragma once

// A pass in double whose every value and gradient is rounded to f32 once: each is the nearest f32 of what its
// op makes of the numbers before it, so that it can be checked by hand, and computed again by another
// program.

#include <cstdint>
#include <vector>

#include "engine/autograd/observe.h"
#include "engine/autograd/pass_record.h"
#include "engine/autograd/tape.h"

namespace tessera {

// What another computation in double of the same tensor has to be told to round it alike, where the two lie
// within `slack` and a relative 2^-44 of one another.
struct Rounding {
  // So near to the middle between two floats that the two may fall on different sides; the last bit of our
  // float tells which is meant.
  struct Close {
    uint64_t cell;
    bool odd;
  };
  // Too small against the slack for that.
  struct Small {
    uint64_t cell;
    float value;
  };

  bool known = false;  // false: the tensor was not rounded here
  double zero = 0;     // the other's results of at most this size are 0, unless they are among `small`
  std::vector<Close> close = {};
  std::vector<Small> small = {};
};

// By the places in PassRecord::values().
struct Roundings {
  std::vector<Rounding> values, gradients;
};

// Rounds what a tape that keeps everything records on this thread while the scope lives: the output of each
// op at once, a gradient when all its parts have been added. No zero is negative then. Floating tensors
// are f64.
class RoundingScope {
 public:
  explicit RoundingScope(Tape& tape);

  // After backward(): rounds the gradients of the leaves too. `record` is the tape's.
  Roundings finish(const PassRecord& record);

 private:
  void round_output(const ForwardEvent& event);
  void settle_output();  // of the op before, whose step is on the tape now
  void round_next_gradient();
  // Rounds the sum of what these steps' operands of a slot have been given.
  Rounding round_gradient(const Tensor& gradient, int slot);

  Tape& tape_;
  std::vector<Rounding> outputs_, gradients_;  // by step
  Tensor unrounded_;                           // the output of the op before
  size_t unrounded_step_ = 0, next_ = 0;       // steps before next_ have not run backward
  Observer observer_;
};

}  // namespace tessera
