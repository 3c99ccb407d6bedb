#include "engine/ops/activations.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/activations_kernels.h"
#include "engine/ops/catalog.h"
#include "engine/ops/write.h"

namespace tessera {

namespace {

Tensor apply(OpName op, Activation f, const Tensor& x) {
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  const char* what = op->name.data();
  dispatch(x, what, [&]<class Dev, class T>() {
    ActivationKernels<Dev>::template forward<T>(f, x.elements(), x.data<T>(), y.data<T>());
  });
  const auto backward = [=](Gradients& g) {
    const Written dx(g, 0);
    dispatch(x, what, [&]<class Dev, class T>() {
      ActivationKernels<Dev>::template backward<T>(f, x.elements(), x.data<T>(), g.dy().data<T>(),
                                                   dx.data<T>(), dx.add());
    });
  };
  return record(op, y, {x}, backward);
}

}  // namespace

std::string_view name(Activation activation) {
  constexpr std::string_view names[] = {"none", "relu",    "gelu",        "gelu_tanh",
                                        "silu", "sigmoid", "log_sigmoid", "tanh"};
  return names[static_cast<size_t>(activation)];
}

Tensor relu(const Tensor& x) { return apply("relu", Activation::relu, x); }
Tensor gelu(const Tensor& x) { return apply("gelu", Activation::gelu, x); }
Tensor gelu_tanh(const Tensor& x) { return apply("gelu_tanh", Activation::gelu_tanh, x); }
Tensor silu(const Tensor& x) { return apply("silu", Activation::silu, x); }
Tensor sigmoid(const Tensor& x) { return apply("sigmoid", Activation::sigmoid, x); }
Tensor log_sigmoid(const Tensor& x) { return apply("log_sigmoid", Activation::log_sigmoid, x); }
Tensor tanh(const Tensor& x) { return apply("tanh", Activation::tanh, x); }

}  // namespace tessera
