#include "engine/ops/conv.h"

#include "engine/autograd/tape.h"
#include "engine/core/scratch.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/catalog.h"
#include "engine/ops/conv_kernels.h"
#include "engine/ops/conv_normed.h"
#include "engine/ops/conv_patches.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/linear.h"
#include "engine/ops/same_device.h"

namespace tessera {

namespace {

void check_map(const char* op, const Tensor& x) {
  check(x.rank() == 4 && x.dim(1) > 0 && x.dim(2) > 0 && x.dim(3) > 0, op, ": input ", x.shape(),
        ", a map [B, H, W, C] of at least one pixel and channel is wanted");
}

ConvSize sized(const char* op, const Tensor& x, int64_t kernel_h, int64_t kernel_w, const ConvOptions& o) {
  check_map(op, x);
  check(o.stride > 0 && o.padding >= 0, op, ": stride ", o.stride, " and padding ", o.padding,
        "; at least 1 and 0 are wanted");
  const int64_t height = x.dim(1) + 2 * o.padding, width = x.dim(2) + 2 * o.padding;
  check(kernel_h > 0 && kernel_w > 0 && height >= kernel_h && width >= kernel_w, op, ": input ", x.shape(),
        " with padding ", o.padding, " is smaller than a window of ", kernel_h, " x ", kernel_w);
  return {x.dim(0),
          x.dim(1),
          x.dim(2),
          x.dim(3),
          0,
          kernel_h,
          kernel_w,
          o.stride,
          o.padding,
          (height - kernel_h) / o.stride + 1,
          (width - kernel_w) / o.stride + 1};
}

void check_weights(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                   int64_t inputs) {
  check_same_device(op, {x, weight, bias});
  check(weight.rank() == 4 && weight.dim(0) > 0 && weight.dim(1) == inputs && weight.dtype() == x.dtype(), op,
        ": input ", x.dtype(), " ", x.shape(), " takes a weight ", x.dtype(), " [O, ", inputs,
        ", kh, kw] with at least one output, not ", weight.dtype(), " ", weight.shape());
  if (bias.defined())
    check(bias.shape() == Shape{weight.dim(0)} && bias.dtype() == x.dtype(), op, ": weight ", weight.shape(),
          " takes a bias ", x.dtype(), " [", weight.dim(0), "], not ", bias.dtype(), " ", bias.shape());
}

Attributes attributes_of(const ConvSize& size) {
  return {{"kernel", std::vector<int64_t>{size.kernel_h, size.kernel_w}},
          {"stride", static_cast<double>(size.stride)},
          {"padding", static_cast<double>(size.padding)}};
}

// The gradient of a weight that no image has met.
void clear(const InputGradient& gradient) {
  if (gradient && !gradient.add()) gradient.tensor().fill(0);
}

// The part that both convolutions share; Kernels and the name tell them apart.
template <template <class> class Kernels>
Tensor convolve(OpName op, const ConvSize& size, const Tensor& x, const Tensor& weight, const Tensor& bias,
                int64_t macs) {
  const char* name = op->name.data();
  const Tensor y = Tensor::empty({size.images, size.out_h, size.out_w, size.out}, x.dtype(), x.device());
  if (size.images > 0)
    dispatch_with_scratch(x, name, [&]<class Dev, class T>() {
      Kernels<Dev>::template forward<T>(size, x.data<T>(), weight.data<T>(),
                                        bias.defined() ? bias.data<T>() : nullptr, y.data<T>());
    });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0), dweight(g, 1), dbias(g, 2);
    if (size.images == 0) {
      clear(dweight);
      return clear(dbias);
    }
    dispatch_with_scratch(x, name, [&]<class Dev, class T>() {
      Kernels<Dev>::template backward<T>(
          size, g.dy().data<T>(), x.data<T>(), weight.data<T>(),
          LayerGradients<T>{dx.target<T>(), dweight.target<T>(), dbias.target<T>()});
    });
  };
  const Tensor made = record(op, y, {x, weight, bias}, backward, macs);
  describe_step(made, [&] { return attributes_of(size); });
  return made;
}

ConvSize conv2d_size(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  check_map("conv2d", x);
  check_weights("conv2d", x, weight, bias, x.dim(3));
  ConvSize size = sized("conv2d", x, weight.dim(2), weight.dim(3), options);
  size.out = weight.dim(0);
  return size;
}

ConvSize depthwise_size(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvOptions& options) {
  check_weights("depthwise_conv2d", x, weight, bias, 1);
  ConvSize size = sized("depthwise_conv2d", x, weight.dim(2), weight.dim(3), options);
  size.out = weight.dim(0);
  check(size.in > 0 && size.out % size.in == 0, "depthwise_conv2d: weight ", weight.shape(), " gives ",
        size.out, " channels, no multiple of the ", size.in, " of the input ", x.shape());
  return size;
}

void check_norm(const char* op, const Tensor& y, const FixedNorm& norm, const Tensor& residual) {
  check_same_device(op, {y, norm.weight, norm.bias, norm.running_mean, norm.running_var, residual});
  const auto expect = [&](const Tensor& p, DType dtype, const char* what) {
    check(p.shape() == Shape{y.dim(3)} && p.dtype() == dtype, op, ": output ", y.dtype(), " ", y.shape(),
          " takes ", what, " ", dtype, " ", Shape{y.dim(3)}, ", not ", p.dtype(), " ", p.shape());
  };
  expect(norm.weight, y.dtype(), "weight");
  expect(norm.bias, y.dtype(), "bias");
  expect(norm.running_mean, wide(y.dtype()), "running mean");
  expect(norm.running_var, wide(y.dtype()), "running variance");
  if (residual.defined())
    check(residual.shape() == y.shape() && residual.dtype() == y.dtype(), op, ": output ", y.dtype(), " ",
          y.shape(), " takes a residual like it, not ", residual.dtype(), " ", residual.shape());
}

Tensor normed(const Tensor& y, const FixedNorm& norm, Activation f, const Tensor& residual) {
  return batch_norm(y, norm.weight, norm.bias, norm.running_mean, norm.running_var, {.eps = norm.eps, .f = f},
                    residual);
}

// A convolution on the CPU and the norm that follows it.
struct NormedConv {
  const char* name;
  ConvSize size;
  bool depthwise;
};

Tensor normed_convolution(const NormedConv& op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const FixedNorm& norm, Activation f, const Tensor& residual) {
  check(!Tape::recording(), op.name,
        ": a tape records, which the convolution, batch_norm and what follows are for");
  const ConvSize& size = op.size;
  const Tensor y = Tensor::empty({size.images, size.out_h, size.out_w, size.out}, x.dtype());
  check_norm(op.name, y, norm, residual);
  dispatch_with_scratch(x, op.name, [&]<class Dev, class T>() {
    if constexpr (std::is_same_v<Dev, Cpu>)
      NormedConvKernels<Cpu>::forward<T>(
          size, op.depthwise, x.data<T>(), weight.data<T>(), bias.defined() ? bias.data<T>() : nullptr,
          {norm.weight.data<T>(),
           norm.bias.data<T>(),
           {norm.running_mean.data<Wide<T>>(), norm.running_var.data<Wide<T>>(), norm.eps, false},
           f,
           residual.defined() ? residual.data<T>() : nullptr},
          y.data<T>());
  });
  return y;
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  const ConvSize size = conv2d_size(x, weight, bias, options);
  if (size.of_pixels()) return linear(x, weight.reshape({size.out, size.in}), bias);
  const int64_t macs = size.images * size.positions() * size.out * size.in * size.window();
  return convolve<ConvKernels>("conv2d", size, x, weight, bias, macs);
}

Tensor normed_conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options,
                     const FixedNorm& norm, Activation f, const Tensor& residual) {
  const ConvSize size = conv2d_size(x, weight, bias, options);
  if (x.device() != Device::cpu || (tiles_map(size) && !size.of_pixels()) || size.images == 0)
    return normed(conv2d(x, weight, bias, options), norm, f, residual);
  return normed_convolution({"normed_conv2d", size, false}, x, weight, bias, norm, f, residual);
}

Tensor depthwise_conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvOptions& options) {
  const ConvSize size = depthwise_size(x, weight, bias, options);
  return convolve<DepthwiseConvKernels>("depthwise_conv2d", size, x, weight, bias,
                                        size.images * size.positions() * size.out * size.window());
}

Tensor normed_depthwise_conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                               const ConvOptions& options, const FixedNorm& norm, Activation f,
                               const Tensor& residual) {
  const ConvSize size = depthwise_size(x, weight, bias, options);
  if (x.device() != Device::cpu || size.images == 0)
    return normed(depthwise_conv2d(x, weight, bias, options), norm, f, residual);
  return normed_convolution({"normed_depthwise_conv2d", size, true}, x, weight, bias, norm, f, residual);
}

Tensor unfold(const Tensor& x, int64_t kernel, const ConvOptions& options) {
  const ConvSize size = sized("unfold", x, kernel, kernel, options);
  const Tensor y =
      Tensor::empty({size.images, size.positions(), size.in * size.window()}, x.dtype(), x.device());
  dispatch(x, "unfold", [&]<class Dev, class T>() {
    UnfoldKernels<Dev>::template forward<T>(size, x.data<T>(), y.data<T>());
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(g.dy(), "unfold", [&]<class Dev, class T>() {
      UnfoldKernels<Dev>::template backward<T>(size, g.dy().data<T>(), dx.target<T>());
    });
  };
  const Tensor made = record("unfold", y, {x}, backward);
  describe_step(made, [&] { return attributes_of(size); });
  return made;
}

}  // namespace tessera
