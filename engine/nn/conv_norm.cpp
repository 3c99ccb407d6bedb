#include "engine/nn/conv_norm.h"

#include "engine/autograd/tape.h"
#include "engine/ops/elementwise.h"

namespace tessera {

Tensor conv_norm(const Conv2d& conv, const BatchNorm& norm, const Tensor& x, const Pass& pass, Activation f,
                 const Tensor& residual) {
  if (!ops_are_seen() && !pass.training) {
    const auto normed = conv.depthwise ? normed_depthwise_conv2d : normed_conv2d;
    return normed(x, conv.weight, conv.bias, conv.convolution,
                  {norm.weight, norm.bias, norm.running_mean, norm.running_var}, f, residual);
  }
  if (!residual.defined() || !tape_keeps_all()) return norm(conv(x), pass, f, residual);
  return activation(f, add(norm(conv(x), pass), residual));
}

}  // namespace tessera
