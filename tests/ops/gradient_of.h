#pragma once

#include <functional>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"

namespace tessera {

// The gradient of x for a random gradient of f(x).
inline Tensor gradient_of(const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  Tensor leaf = x.clone().require_grad();
  Tape tape;
  const Tensor y = f(leaf);
  tape.backward(y, random_tensor(y.shape(), 77).to(y.dtype()));
  return leaf.grad();
}

}  // namespace tessera
