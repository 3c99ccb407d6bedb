#include "engine/nn/conv2d.h"

#include "engine/autograd/observe.h"

namespace tessera {

Conv2d::Conv2d(const Scope& scope, int64_t in, int64_t out, int64_t kernel, const Options& o)
    : convolution{.stride = o.stride, .padding = o.padding}, depthwise(o.depthwise), path(scope.path()) {
  const int64_t inputs = depthwise ? 1 : in;
  const bool own = o.weight_init != nullptr;
  weight = scope.parameter("weight", {out, inputs, kernel, kernel}, own ? o.weight_init : pytorch_uniform());
  if (o.bias)
    bias = scope.parameter("bias", {out}, own ? constant(0) : pytorch_uniform(inputs * kernel * kernel));
}

Tensor Conv2d::operator()(const Tensor& x) const {
  const ModuleScope here(path);
  return depthwise ? depthwise_conv2d(x, weight, bias, convolution) : conv2d(x, weight, bias, convolution);
}

}  // namespace tessera
