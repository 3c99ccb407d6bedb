#include "engine/ops/linear.h"

#include "engine/autograd/tape.h"
#include "engine/core/scratch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/linear_kernels.h"
#include "engine/ops/same_device.h"

namespace tessera {

namespace {

void check_sizes(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check(x.rank() > 0 && weight.rank() == 2, "linear: input ", x.shape(), " and weight ", weight.shape(),
        " should be [..., K] and [N, K]");
  check(x.dim(-1) == weight.dim(1), "linear: input ", x.shape(), " has ", x.dim(-1), " columns, weight ",
        weight.shape(), " takes ", weight.dim(1));
  check(!bias.defined() || bias.shape() == Shape{weight.dim(0)}, "linear: weight ", weight.shape(),
        " takes a bias ", Shape{weight.dim(0)}, ", not ", bias.shape());
  for (const Tensor& p : {weight, bias})
    check(!p.defined() || p.dtype() == x.dtype(), "linear: input ", x.dtype(), " ", x.shape(),
          " takes parameters ", x.dtype(), ", not ", p.dtype(), " ", p.shape());
  check_same_device("linear", {x, weight, bias});
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f) {
  check_sizes(x, weight, bias);
  const int64_t in = weight.dim(1), out = weight.dim(0);
  const LinearSize size{x.shape().elements(0, x.rank() - 1), in, out};
  const Tensor y = Tensor::empty(x.shape().with(-1, out), x.dtype(), x.device());
  const bool keeps = f != Activation::none && wants_gradient({x, weight, bias});
  const Tensor kept = keeps ? Tensor::empty(y.shape(), y.dtype(), y.device()) : Tensor();
  dispatch_with_scratch(x, "linear", [&]<class Dev, class T>() {
    LinearKernels<Dev>::template forward<T>(size, x.data<T>(), weight.data<T>(),
                                            bias.defined() ? bias.data<T>() : nullptr, f, y.data<T>(),
                                            keeps ? kept.data<T>() : nullptr);
  });
  const Tensor x_read = wants_gradient({weight}) ? x.detach() : Tensor();
  const Tensor weight_read = wants_gradient({x}) ? weight.detach() : Tensor();
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0), dweight(g, 1), dbias(g, 2);
    dispatch_with_scratch(g.dy(), "linear", [&]<class Dev, class T>() {
      LinearKernels<Dev>::template backward<T>(
          size, f, g.dy().data<T>(), keeps ? kept.data<T>() : nullptr, dweight ? x_read.data<T>() : nullptr,
          dx ? weight_read.data<T>() : nullptr,
          LayerGradients<T>{dx.target<T>(), dweight.target<T>(), dbias.target<T>()});
    });
  };
  const Tensor made = record("linear", y, {x, weight, bias}, backward, size.rows * in * out);
  describe_step(made, [&] { return Attributes{{"f", std::string(name(f))}}; });
  return made;
}

}  // namespace tessera
