#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/autograd/attribute.h"
#include "engine/autograd/observe.h"
#include "engine/autograd/op.h"
#include "engine/core/tensor.h"
#include "engine/core/thread_scope.h"

namespace tessera {

class Gradients;
class Tape;
using Backward = std::function<void(Gradients&)>;
using Input = std::reference_wrapper<const Tensor>;
using Inputs = std::initializer_list<Input>;

/// Says which tape records on this thread; null for none. Tape and NoRecording hold one.
class TapeScope : public ThreadScope<TapeScope> {
 public:
  explicit TapeScope(Tape* tape) : tape_(tape) {}
  Tape* tape() const { return tape_; }

 private:
  Tape* tape_;
};

/// Records the ops of its thread while it lives, and computes gradients by reading them backwards
/// (reverse-mode differentiation). Nothing is recorded without a tape. Tapes nest, the innermost one records.
///
///   Tensor w = Tensor::from({1, 2}, {2, 1}).require_grad();
///   Tape tape;
///   Tensor loss = sum(matmul(x, w));
///   tape.backward(loss);          // w.grad() is dloss/dw
class Tape {
 public:
  /// One recorded op.
  struct Step {
    OpName op;
    std::string path;         ///< the module that ran it
    std::vector<int> inputs;  ///< their slots; -1 for an input that needs no gradient
    int output;               ///< its slot
    Backward backward;        ///< adds to the inputs' gradients; empty once it has run
    int64_t macs = 0;         ///< multiply-accumulates of the forward pass, as ForwardEvent has them
    int64_t bytes = 0;        ///< of the gradients, as BackwardEvent has them
    /// Set where the tape keeps everything, see keep_all(): the values themselves, constants among them, and
    /// the name that name_value() gave to the output.
    std::vector<Tensor> operands = {};
    Tensor result = {};
    std::string role = {};
    Attributes attributes = {};  ///< given by describe_step()
  };

  Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Adds dL/dx to the gradient of every leaf x that the loss L depends on. A tape is read once, and what its
  /// steps hold is freed on the way. Fails for a loss of more than one element, for a value that this tape
  /// did not record, and for a second call.
  void backward(const Tensor& loss);
  /// Starts from dL/dy, of y's size and type, where y has any shape.
  void backward(const Tensor& y, const Tensor& dy);

  /// Asks that gradient(x) holds dL/dx after backward(), for a recorded x.
  void keep(const Tensor& x);
  /// Asks this for every value that is recorded from now on, and that the steps hold their operands and
  /// results, for a PassRecord (pass_record.h). Layers then run ops that they would fuse one by one.
  void keep_all() { keep_all_ = true; }
  bool keeps_all() const { return keep_all_; }
  /// dL/dx: a leaf's, or that of a value that was kept; undefined where none flowed to it. Fails for others.
  Tensor gradient(const Tensor& x) const;

  const std::vector<Step>& steps() const { return steps_; }
  /// The gradient of step i's output; undefined where it was not kept or none flowed to it.
  Tensor gradient_of_step(size_t i) const;

  /// The slot of a recorded value, or of a leaf that a step has read; -1 for any other tensor.
  int slot_of_known(const Tensor& x) const;

  /// The tape that records on this thread now, or null.
  static Tape* recording();

 private:
  friend class Gradients;
  friend void name_value(const Tensor&, std::string_view);
  template <class Describe> friend void describe_step(const Tensor&, const Describe&);
  friend Tensor record(OpName, Tensor, std::span<const Input>, Backward, int64_t);

  /// A value that needs a gradient: a leaf, or an op's output.
  struct Slot {
    Shape shape;
    DType dtype;
    Device device;
    Tensor grad;
    std::shared_ptr<Leaf> leaf;  ///< null for an op's output
    bool keep = false;
    bool lent = false;  ///< grad may alias a tensor held elsewhere: clone before accumulating
  };

  int slot_of(const Tensor& input);  ///< makes a leaf's slot when it is first met; -1 for a constant
  int new_slot(const Tensor& value, std::shared_ptr<Leaf> leaf);
  const Slot& slot_at(const Tensor& x, const char* what) const;
  Step* step_that_made(const Tensor& x);  ///< null where this tape recorded none

  TapeScope scope_{this};
  uint64_t number_;  ///< unlike any other tape's of this process
  bool read_ = false, keep_all_ = false;
  std::vector<Step> steps_;
  std::vector<Slot> slots_;
};

/// The gradients that a step's backward reads and writes.
class Gradients {
 public:
  Gradients(Tape& tape, const Tape::Step& step) : tape_(tape), step_(step) {}

  const Tensor& dy() const;    ///< the gradient of the output
  bool wants(int i) const;     ///< whether input i needs a gradient; its computation can be skipped where not
  void add(int i, Tensor dx);  ///< adds dx to the gradient of input i; nothing where it needs none

  /// Memory for the gradient of input i, for a kernel to write in place.
  struct Into {
    Tensor grad;
    bool add;  ///< add to what is there; else write every element
  };
  Into into(int i);

 private:
  friend class Tape;
  Into target(int slot);
  void add_spares();  ///< at the end of the step

  Tape& tape_;
  const Tape::Step& step_;
  std::vector<int> given_;                      ///< slots whose memory into() has handed out in this step
  std::vector<std::pair<int, Tensor>> spares_;  ///< where two inputs are one tensor: memory for the second
};

/// Names the last recorded value inside its module ("scores", "probabilities"), for those who look at a pass.
/// Does nothing unless a tape that keeps everything has recorded it.
void name_value(const Tensor& x, std::string_view role);

/// Tells those who look at a pass what the op that made y was asked beside its inputs: `describe()` returns
/// the Attributes, and is called only where a tape that keeps everything has recorded the op.
///
///   describe_step(y, [&] { return Attributes{{"axis", axis}}; });
template <class Describe> void describe_step(const Tensor& y, const Describe& describe) {
  Tape* tape = Tape::recording();
  if (!tape || !tape->keeps_all()) return;
  if (Tape::Step* step = tape->step_that_made(y)) step->attributes = describe();
}

/// Whether a tape that keeps all records on this thread. Layers then run ops that they would fuse one by one.
bool tape_keeps_all();

/// Whether a tape records on this thread or an Observer is told. Where neither is, nobody sees the single
/// ops, and layers may compute several at once.
bool ops_are_seen();

/// Whether an op on these inputs would be recorded: if not, nothing need be saved for its backward.
bool wants_gradient(Inputs inputs);

/// Ends every op: tells the observer of y = op(inputs), and records it if a tape lives and an input needs a
/// gradient. Returns y. An undefined input (an optional one left out) is skipped. `macs` are the
/// multiply-accumulates. Fails for an input that belongs to a tape which has ended.
Tensor record(OpName op, Tensor y, Inputs inputs, Backward backward, int64_t macs = 0);
/// For an op whose number of inputs is known at run time only.
Tensor record(OpName op, Tensor y, std::span<const Input> inputs, Backward backward, int64_t macs = 0);

/// Its thread records nothing while it lives.
class NoRecording {
 private:
  TapeScope none_{nullptr};
};

}  // namespace tessera
