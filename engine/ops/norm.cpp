#include "engine/ops/norm.h"

#include <type_traits>

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/images.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/norm_kernels.h"
#include "engine/ops/same_device.h"
#include "engine/ops/take.h"

namespace tessera {

namespace {

void check_norm(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check(x.rank() > 0, "layer_norm: a scalar has no row to norm");
  check_same_device("layer_norm", {x, weight, bias});
  for (const Tensor& p : {weight, bias})
    check(p.shape() == Shape{x.dim(-1)} && p.dtype() == x.dtype(), "layer_norm: input ", x.dtype(), " ",
          x.shape(), " takes weight and bias ", x.dtype(), " ", Shape{x.dim(-1)}, ", not ", p.dtype(), " ",
          p.shape());
}

// The norm's mean and 1 / sqrt(var + eps) of each row.
struct Statistics {
  Statistics(int64_t rows, const Tensor& x)
      : mean(Tensor::empty({rows}, wide(x.dtype()), x.device())),
        rstd(Tensor::empty({rows}, wide(x.dtype()), x.device())) {}

  Tensor mean, rstd;
};

// layer_norm() of some images, which a CPU reads where they lie.
Tensor norm_of_images(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                      const Tensor& images) {
  check_images("layer_norm", images, x.rank() < 2 ? 0 : x.dim(0));
  if (!has_image_kernels(x)) return layer_norm(take(x, 0, images), weight, bias, eps);
  const Tensor y = Tensor::empty(x.shape().with(0, images.elements()), x.dtype());
  const int64_t width = x.dim(-1), rows = width == 0 ? 0 : y.elements() / width;
  const Statistics of(rows, x);
  const auto picked = [=] { return ImageRows{list_of(images), rows / images.elements()}; };
  dispatch(x, "layer_norm", [&]<class Dev, class T>() {
    if constexpr (std::is_same_v<Dev, Cpu>)
      LayerNormKernels<Cpu>::forward_of<T>({rows, width}, picked(), x.data<T>(), weight.data<T>(),
                                           bias.data<T>(), eps, y.data<T>(), of.mean.data<Wide<T>>(),
                                           of.rstd.data<Wide<T>>());
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0), dweight(g, 1), dbias(g, 2);
    if (dx && !dx.add()) dx.tensor().fill(0);  // the other images'
    dispatch(x, "layer_norm", [&]<class Dev, class T>() {
      if constexpr (std::is_same_v<Dev, Cpu>)
        LayerNormKernels<Cpu>::backward_of<T>(
            {rows, width}, picked(), g.dy().data<T>(), x.data<T>(), weight.data<T>(), of.mean.data<Wide<T>>(),
            of.rstd.data<Wide<T>>(),
            LayerGradients<T>{{dx.target<T>().data, true}, dweight.target<T>(), dbias.target<T>()});
    });
  };
  return record("layer_norm", y, {x, weight, bias}, backward, y.elements());
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                  const Tensor& images) {
  check_norm(x, weight, bias);
  if (images.defined()) return norm_of_images(x, weight, bias, eps, images);
  const int64_t width = x.dim(-1), rows = width == 0 ? 0 : x.elements() / width;
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  const Statistics of(rows, x);
  dispatch(x, "layer_norm", [&]<class Dev, class T>() {
    LayerNormKernels<Dev>::template forward<T>({rows, width}, x.data<T>(), weight.data<T>(), bias.data<T>(),
                                               eps, y.data<T>(), of.mean.data<Wide<T>>(),
                                               of.rstd.data<Wide<T>>());
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0), dweight(g, 1), dbias(g, 2);
    dispatch(x, "layer_norm", [&]<class Dev, class T>() {
      LayerNormKernels<Dev>::template backward<T>(
          {rows, width}, g.dy().data<T>(), x.data<T>(), weight.data<T>(), of.mean.data<Wide<T>>(),
          of.rstd.data<Wide<T>>(), LayerGradients<T>{dx.target<T>(), dweight.target<T>(), dbias.target<T>()});
    });
  };
  const Tensor made = record("layer_norm", y, {x, weight, bias}, backward, x.elements());
  describe_step(made, [&] { return Attributes{{"eps", eps}}; });
  return made;
}

}  // namespace tessera
