#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/autograd/observe.h"
#include "engine/autograd/op.h"
#include "engine/core/tensor.h"

namespace tessera {

class Gradients;
using Backward = std::function<void(Gradients&)>;
using Input = std::reference_wrapper<const Tensor>;
using Inputs = std::initializer_list<Input>;

// What happened, read backwards. A Tape records the ops of its thread while it lives; without one nothing is
// recorded. Tapes nest, the innermost records.
//
//   Tensor w = Tensor::from({1, 2}, {2, 1}).require_grad();
//   Tape tape;
//   Tensor loss = sum(matmul(x, w));
//   tape.backward(loss);          // w.grad() is dloss/dw
class Tape {
 public:
  struct Step {
    OpName op;
    std::string path;         // the module that ran it
    std::vector<int> inputs;  // slots; -1 for an input that needs no gradient
    int output;
    Backward backward;  // adds to the inputs' gradients; empty once it has run
  };

  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Adds d loss / d leaf to every leaf that `loss` depends on. `loss` has one element, unless its own
  // gradient `dy` is given. A tape is read once: what its steps have saved is freed on the way. Fails for
  // a value that this tape did not record, and for a second reading.
  void backward(const Tensor& loss);
  void backward(const Tensor& y, const Tensor& dy);

  // Asks that gradient(x) holds d loss / d x after backward(), for a recorded x.
  void keep(const Tensor& x);
  // The same for every recorded value (the inspector's wish).
  void keep_all() { keep_all_ = true; }
  Tensor gradient(const Tensor& x) const;

  const std::vector<Step>& steps() const { return steps_; }
  // The gradient kept of step i's output; undefined if none was kept or none came.
  Tensor gradient_of_step(size_t i) const;

  // The tape that records on this thread now, or null.
  static Tape* recording();

 private:
  friend class Gradients;
  friend class Pause;
  friend Tensor record(OpName, Tensor, std::span<const Input>, Backward, int64_t);

  struct Slot {
    Shape shape;
    DType dtype;
    Device device;
    Tensor grad;
    std::shared_ptr<Leaf> leaf;
    bool keep = false;
    bool lent = false;  // grad came whole from elsewhere, which may hold its memory still: not ours to add to
  };

  int slot_of(const Tensor& input);  // makes a leaf's slot at first sight; -1 for a constant
  int new_slot(const Tensor& value, std::shared_ptr<Leaf> leaf);
  const Slot& slot_at(const Tensor& x, const char* what) const;

  uint64_t number_;
  bool read_ = false, keep_all_ = false;
  std::vector<Step> steps_;
  std::vector<Slot> slots_;
};

// What a step's backward reads and writes.
class Gradients {
 public:
  Gradients(Tape& tape, const Tape::Step& step) : tape_(tape), step_(step) {}

  const Tensor& dy() const;    // the gradient of the output
  bool wants(int i) const;     // whether input i needs a gradient; skip the work where not
  void add(int i, Tensor dx);  // adds dx to the gradient of input i

  // Memory for the gradient of input i, to be written in place: add to it if `add` is set, else write all.
  struct Into {
    Tensor grad;
    bool add;
  };
  Into into(int i);

 private:
  friend class Tape;
  Into target(int slot);
  void settle();  // ends the step: adds the spares up

  Tape& tape_;
  const Tape::Step& step_;
  std::vector<int> given_;                      // slots whose memory into() has given out in this step
  std::vector<std::pair<int, Tensor>> spares_;  // for inputs that are the same tensor: memory of their own
};

// Whether an op on these inputs would be recorded: if not, nothing need be saved for its backward.
bool wants_gradient(Inputs inputs);

// Ends every op: tells the observer, and records y = op(inputs) if a tape lives and an input needs a
// gradient. An undefined input (an optional one left out) is skipped. `macs` are the multiply-accumulates.
// Fails for an input that belongs to a tape which has ended.
Tensor record(OpName op, Tensor y, Inputs inputs, Backward backward, int64_t macs = 0);
// The same for inputs whose number is known at run time only.
Tensor record(OpName op, Tensor y, std::span<const Input> inputs, Backward backward, int64_t macs = 0);

// While one lives, its thread records nothing.
class Pause {
 public:
  Pause();
  ~Pause();
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
};

}  // namespace tessera
