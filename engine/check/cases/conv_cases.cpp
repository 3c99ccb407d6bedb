#include "engine/check/op_case.h"
#include "engine/ops/conv.h"

namespace tessera {

namespace {

OpCase convolution(const char* op, const char* variant, bool depthwise, const Shape& x, const Shape& weight,
                   ConvOptions options) {
  return {op,
          variant,
          {random_tensor(x, 1), random_tensor(weight, 2), random_tensor({weight[0]}, 3)},
          [=](std::span<const Tensor> in) {
            return depthwise ? depthwise_conv2d(in[0], in[1], in[2], options)
                             : conv2d(in[0], in[1], in[2], options);
          }};
}

}  // namespace

OpCases conv_cases() {
  return {convolution("conv2d", "3 x 3, padded", false, {2, 5, 4, 3}, {4, 3, 3, 3}, {1, 1}),
          convolution("conv2d", "stride 2", false, {3, 7, 6, 2}, {3, 2, 3, 3}, {2, 1}),
          convolution("conv2d", "patches, rectangular", false, {2, 4, 6, 2}, {5, 2, 2, 3}, {2, 0}),
          convolution("conv2d", "padded beyond the window", false, {2, 3, 2, 2}, {3, 2, 2, 2}, {1, 2}),
          convolution("conv2d", "many channels", false, {2, 4, 3, 20}, {34, 20, 2, 2}, {1, 1}),
          convolution("conv2d", "many rows at once", false, {17, 20, 16, 1}, {1, 1, 2, 2}, {1, 0}),
          convolution("depthwise_conv2d", "", true, {2, 5, 4, 3}, {3, 1, 3, 3}, {1, 1}),
          convolution("depthwise_conv2d", "two filters a channel, stride 2", true, {2, 5, 4, 3}, {6, 1, 3, 3},
                      {2, 1}),
          convolution("depthwise_conv2d", "5 x 5", true, {17, 3, 4, 2}, {2, 1, 5, 5}, {1, 2}),
          {"unfold", "", {random_tensor({2, 5, 4, 3}, 1)}, [](std::span<const Tensor> in) {
             return unfold(in[0], 3, {.stride = 2, .padding = 1});
           }}};
}

}  // namespace tessera
