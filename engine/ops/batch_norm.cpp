#include "engine/ops/batch_norm.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/batch_norm_kernels.h"
#include "engine/ops/catalog.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/same_device.h"

namespace tessera {

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormOptions& options, const Tensor& residual) {
  if (residual.defined())
    check(residual.shape() == x.shape() && residual.dtype() == x.dtype(), "batch_norm: input ", x.dtype(),
          " ", x.shape(), " takes a residual like it, not ", residual.dtype(), " ", residual.shape());
  if (residual.defined() && (x.device() != Device::cpu || tape_keeps_all())) {
    BatchNormOptions plain = options;
    plain.f = Activation::none;
    return activation(options.f,
                      add(batch_norm(x, weight, bias, running_mean, running_var, plain), residual));
  }
  check(x.rank() > 0 && x.elements() > 0, "batch_norm: input ", x.shape(), " has no row to norm");
  check_same_device("batch_norm", {x, weight, bias, running_mean, running_var, residual});
  const int64_t width = x.dim(-1), rows = x.elements() / width;
  const auto expect = [&](const Tensor& p, DType dtype, const char* what) {
    check(p.shape() == Shape{width} && p.dtype() == dtype, "batch_norm: input ", x.dtype(), " ", x.shape(),
          " takes ", what, " ", dtype, " ", Shape{width}, ", not ", p.dtype(), " ", p.shape());
  };
  expect(weight, x.dtype(), "weight");
  expect(bias, x.dtype(), "bias");
  expect(running_mean, wide(x.dtype()), "running mean");
  expect(running_var, wide(x.dtype()), "running variance");
  check(!options.training || rows > 1, "batch_norm: input ", x.shape(),
        " has one row a channel, whose variance is nothing to norm by; train with more images");
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  Tensor mean, variance;
  if (options.training) {
    mean = Tensor::empty({width}, wide(x.dtype()), x.device());
    variance = Tensor::empty({width}, wide(x.dtype()), x.device());
  } else {  // copies: the running ones may move before the backward reads them
    mean = running_mean.clone();
    variance = running_var.clone();
  }
  dispatch(x, "batch_norm", [&]<class Dev, class T>() {
    using Kernels = BatchNormKernels<Dev>;
    Wide<T>*m = mean.data<Wide<T>>(), *v = variance.data<Wide<T>>();
    if (options.training)
      Kernels::template statistics<T>({rows, width}, x.data<T>(), options.momentum, m, v,
                                      running_mean.data<Wide<T>>(), running_var.data<Wide<T>>());
    const NormedColumns<T> z{x.data<T>(),
                             weight.data<T>(),
                             bias.data<T>(),
                             {m, v, options.eps, options.training},
                             residual.defined() ? residual.data<T>() : nullptr};
    Kernels::template forward<T>({rows, width}, z, options.f, y.data<T>());
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0), dweight(g, 1), dbias(g, 2), dresidual(g, 3);
    dispatch(x, "batch_norm", [&]<class Dev, class T>() {
      const NormedColumns<T> z{
          x.data<T>(),
          weight.data<T>(),
          bias.data<T>(),
          {mean.data<Wide<T>>(), variance.data<Wide<T>>(), options.eps, options.training},
          residual.defined() ? residual.data<T>() : nullptr};
      BatchNormKernels<Dev>::template backward<T>(
          {rows, width}, g.dy().data<T>(), z, options.f,
          LayerGradients<T>{dx.target<T>(), dweight.target<T>(), dbias.target<T>()}, dresidual.target<T>());
    });
  };
  const Tensor made = record("batch_norm", y, {x, weight, bias, residual}, backward, 2 * x.elements());
  describe_step(made, [&] {
    return Attributes{{"eps", options.eps},
                      {"training", options.training ? 1.0 : 0.0},
                      {"mean", mean},
                      {"variance", variance},
                      {"f", std::string(name(options.f))}};
  });
  return made;
}

}  // namespace tessera
