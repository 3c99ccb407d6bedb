#include "engine/ops/residual_norm.h"

#include <memory>
#include <utility>

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/norm.h"
#include "engine/ops/residual_norm_kernels.h"

namespace tessera {

namespace {

// Whether one kernel serves: operands that fit, which the two ops check, and nobody who looks at each op.
bool is_fused(const Tensor& x, const Tensor& branch, const PathDraw& draw, const Tensor& weight,
              const Tensor& bias) {
  const auto fits = [&](const Tensor& t) {
    return t.shape() == Shape{x.dim(-1)} && t.dtype() == x.dtype() && t.device() == x.device();
  };
  return draw.p >= 0 && draw.p < 1 && !draw.images.defined() && x.rank() > 1 && x.elements() > 0 &&
         !tape_keeps_all() && branch.shape() == x.shape() && branch.dtype() == x.dtype() &&
         branch.device() == x.device() && fits(weight) && fits(bias);
}

// The sum's two steps of the tape. The norm is recorded last, so in the backward pass it is the last to add
// to the sum's gradient, and its kernel leaves the branch's too.
struct Fused {
  ResidualSize size;
  Tensor sum, mean, rstd;
  std::shared_ptr<Tensor> branch_gradient = std::make_shared<Tensor>();

  void record_residual(const Tensor& x, const Tensor& branch) {
    const auto backward = [size = size, ready = branch_gradient](Gradients& g) {
      g.add(0, g.dy());
      if (size.p == 0) return g.add(1, g.dy());
      if (ready->defined()) return g.add(1, std::exchange(*ready, {}));
      if (const InputGradient df(g, 1); df)  // the norm's output was not used
        dispatch(g.dy(), "drop_path", [&]<class Dev, class T>() {
          DropoutKernels<Dev>::template drop_path<T>(size.images(), size.p, size.key,
                                                     static_cast<const T*>(nullptr), g.dy().data<T>(),
                                                     df.target<T>());
        });
    };
    sum = record("drop_path", sum, {x, branch}, backward);
  }

  Tensor record_norm(const Tensor& normed, const Tensor& weight, const Tensor& bias,
                     bool branch_wanted) const {
    const auto backward = [=, *this](Gradients& g) {
      const InputGradient dsum(g, 0), dweight(g, 1), dbias(g, 2);
      const bool both = branch_wanted && dsum && size.p > 0;
      if (both) *branch_gradient = Tensor::empty(sum.shape(), sum.dtype(), sum.device());
      dispatch(sum, "layer_norm", [&]<class Dev, class T>() {
        ResidualNormKernels<Dev>::template backward<T>(
            size, g.dy().data<T>(),
            {sum.data<T>(), weight.data<T>(), mean.data<Wide<T>>(), rstd.data<Wide<T>>()},
            LayerGradients<T>{dsum.target<T>(), dweight.target<T>(), dbias.target<T>()},
            both ? branch_gradient->data<T>() : nullptr);
      });
    };
    return record("layer_norm", normed, {sum, weight, bias}, backward, sum.elements());
  }
};

}  // namespace

NormedSum residual_norm(const Tensor& x, const Tensor& branch, const PathDraw& draw, const Tensor& weight,
                        const Tensor& bias, double eps, const std::string& norm_path, const Tensor& images) {
  if (images.defined() || !is_fused(x, branch, draw, weight, bias)) {
    const Tensor sum = drop_path(x, branch, draw);
    const ModuleScope norm(norm_path);
    return {sum, layer_norm(sum, weight, bias, eps, images)};
  }
  const int64_t width = x.dim(-1), rows = x.elements() / width;
  const auto like = [&](const Shape& shape, DType type) { return Tensor::empty(shape, type, x.device()); };
  Fused made{{{rows, width}, rows / x.dim(0), draw.p, draw.key},
             like(x.shape(), x.dtype()),
             like({rows}, wide(x.dtype())),
             like({rows}, wide(x.dtype()))};
  const Tensor normed = like(x.shape(), x.dtype());
  dispatch(x, "residual_norm", [&]<class Dev, class T>() {
    ResidualNormKernels<Dev>::template forward<T>(made.size, x.data<T>(), branch.data<T>(), weight.data<T>(),
                                                  bias.data<T>(), eps, made.sum.data<T>(), normed.data<T>(),
                                                  made.mean.data<Wide<T>>(), made.rstd.data<Wide<T>>());
  });
  made.record_residual(x, branch);
  const ModuleScope norm(norm_path);
  return {made.sum, made.record_norm(normed, weight, bias, wants_gradient({branch}))};
}

}  // namespace tessera
