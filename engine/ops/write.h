#pragma once

#include "engine/autograd/tape.h"

namespace tessera {

// The gradient of input i as a kernel writes it: a pointer, null where it is not wanted, and whether to add
// to what is there or to write over it.
class Written {
 public:
  Written(Gradients& gradients, int i) {
    if (gradients.wants(i)) into_ = gradients.into(i);
  }
  template <class T> T* data() const { return into_.grad.defined() ? into_.grad.data<T>() : nullptr; }
  bool add() const { return into_.add; }
  const Tensor& tensor() const { return into_.grad; }
  explicit operator bool() const { return into_.grad.defined(); }

 private:
  Gradients::Into into_{{}, false};
};

}  // namespace tessera
