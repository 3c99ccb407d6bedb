#include "engine/ops/norm.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/norm_kernels.h"
#include "engine/ops/same_device.h"

namespace tessera {

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  check(x.rank() > 0, "layer_norm: a scalar has no row to norm");
  check_same_device("layer_norm", {x, weight, bias});
  const int64_t width = x.dim(-1), rows = width == 0 ? 0 : x.elements() / width;
  for (const Tensor& p : {weight, bias})
    check(p.shape() == Shape{width} && p.dtype() == x.dtype(), "layer_norm: input ", x.dtype(), " ",
          x.shape(), " takes weight and bias ", x.dtype(), " ", Shape{width}, ", not ", p.dtype(), " ",
          p.shape());
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  const Tensor mean = Tensor::empty({rows}, wide(x.dtype()), x.device()),
               rstd = Tensor::empty({rows}, wide(x.dtype()), x.device());
  dispatch(x, "layer_norm", [&]<class Dev, class T>() {
    LayerNormKernels<Dev>::template forward<T>({rows, width}, x.data<T>(), weight.data<T>(), bias.data<T>(),
                                               eps, y.data<T>(), mean.data<Wide<T>>(), rstd.data<Wide<T>>());
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0), dweight(g, 1), dbias(g, 2);
    dispatch(x, "layer_norm", [&]<class Dev, class T>() {
      LayerNormKernels<Dev>::template backward<T>(
          {rows, width}, g.dy().data<T>(), x.data<T>(), weight.data<T>(), mean.data<Wide<T>>(),
          rstd.data<Wide<T>>(), LayerGradients<T>{dx.target<T>(), dweight.target<T>(), dbias.target<T>()});
    });
  };
  const Tensor made = record("layer_norm", y, {x, weight, bias}, backward, x.elements());
  describe_step(made, [&] { return Attributes{{"eps", eps}}; });
  return made;
}

}  // namespace tessera
