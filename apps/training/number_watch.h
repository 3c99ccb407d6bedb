#pragma once

#include <optional>
#include <string>
#include <utility>

#include "engine/autograd/observe.h"
#include "engine/autograd/tape.h"
#include "engine/nn/parameters.h"

namespace tessera {

// How many numbers of x are NaN or infinite and where the first is: "3 of its 64 numbers are NaN, the first
// at 17 ([1, 1])". Nothing where all are finite, or x holds integers. `mask`: minus infinity is no fault.
std::optional<std::string> not_finite(const Tensor& x, bool mask = false);

// The name, shape and not_finite() text of the first tensor with such a number: "'head.bias', [10]: ...".
std::optional<std::string> first_not_finite(const NamedTensors& tensors);

// While it lives, looks at the output of every op of this thread, and at every gradient of one backward pass,
// for the first tensor with a NaN or an infinity. Slow; made to repeat a step that went wrong.
class NumberWatch {
 public:
  explicit NumberWatch(const Parameters& parameters);

  // To be called before tape.backward(loss): looks at the gradients of that pass too.
  void watch_backward(const Tape& tape, const Tensor& loss);

  // "softmax in blocks.0.attn gave [8, 2, 17, 17]: 3 of its ...", or for a gradient "the backward of ...".
  const std::optional<std::string>& found() const { return found_; }

 private:
  void look_forward(const ForwardEvent& event);
  void look_backward(const BackwardEvent& event);
  // The gradient in a slot of the tape, with the name of the tensor that it belongs to.
  std::pair<std::string, Tensor> gradient_in(int slot) const;

  const Parameters& parameters_;
  const Tape* tape_ = nullptr;
  uint64_t tape_number_ = 0;
  size_t step_ = 0;  // the tape's steps from this one on have run backward
  std::optional<std::string> found_;
  Observer observer_;
};

}  // namespace tessera
