#include "engine/ops/same_device.h"

#include "engine/core/error.h"

namespace tessera {

void check_same_device(const char* op, std::span<const Input> tensors) {
  const Tensor* first = nullptr;
  for (const Tensor& x : tensors) {
    if (!x.defined()) continue;
    if (!first) first = &x;
    check(x.device() == first->device(), op, ": ", first->dtype(), " ", first->shape(), " is on ",
          first->device(), ", ", x.dtype(), " ", x.shape(), " on ", x.device(),
          "; move them to one device with to()");
  }
}

void check_same_device(const char* op, Inputs tensors) {
  check_same_device(op, std::span(tensors.begin(), tensors.size()));
}

}  // namespace tessera
