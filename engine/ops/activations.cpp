#include "engine/ops/activations.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/activations_kernels.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"

namespace tessera {

namespace {

Tensor apply(OpName op, Activation f, const Tensor& x) {
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  const char* op_name = op->name.data();
  dispatch(x, op_name, [&]<class Dev, class T>() {
    ActivationKernels<Dev>::template forward<T>(f, x.elements(), x.data<T>(), y.data<T>());
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(x, op_name, [&]<class Dev, class T>() {
      ActivationKernels<Dev>::template backward<T>(f, x.elements(), x.data<T>(), g.dy().data<T>(),
                                                   dx.target<T>());
    });
  };
  return record(op, y, {x}, backward);
}

}  // namespace

std::string_view name(Activation activation) {
#define TESSERA_TEXT(name, ...) \
  case Activation::name:        \
    return #name;
  switch (activation) {
    case Activation::none:
      return "none";
      TESSERA_ACTIVATIONS(TESSERA_TEXT)
  }
#undef TESSERA_TEXT
  return "";
}

#define TESSERA_DEFINE(name, ...) \
  Tensor name(const Tensor& x) { return apply(#name, Activation::name, x); }
TESSERA_ACTIVATIONS(TESSERA_DEFINE)
#undef TESSERA_DEFINE

Tensor activation(Activation f, const Tensor& x) {
#define TESSERA_CALL(name, ...) \
  case Activation::name:        \
    return name(x);
  switch (f) {
    case Activation::none:
      return x;
      TESSERA_ACTIVATIONS(TESSERA_CALL)
  }
#undef TESSERA_CALL
  return x;
}

}  // namespace tessera
