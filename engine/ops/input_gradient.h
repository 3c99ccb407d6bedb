#pragma once

#include "engine/autograd/tape.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// The gradient of input i of the step whose backward is running: asks the tape for memory if it is wanted.
class InputGradient {
 public:
  InputGradient(Gradients& gradients, int i) {
    if (gradients.wants(i)) into_ = gradients.into(i);
  }

  // As kernels take it.
  template <class T> Target<T> target() const {
    return {into_.grad.defined() ? into_.grad.data<T>() : nullptr, into_.add};
  }

  explicit operator bool() const { return into_.grad.defined(); }  // whether it is wanted
  const Tensor& tensor() const { return into_.grad; }
  bool add() const { return into_.add; }

 private:
  Gradients::Into into_{{}, false};
};

}  // namespace tessera
