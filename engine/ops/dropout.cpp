#include "engine/ops/dropout.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/dropout_kernels.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/images.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/same_device.h"
#include "engine/ops/shape.h"
#include "engine/ops/take.h"

namespace tessera {

namespace {

void check_probability(double p, const char* what) {
  check(p >= 0 && p < 1, what, ": p ", p, " is no probability of at least 0 and below 1");
}

// Fails if an image that keeps the branch is not among those of which it was computed.
void check_kept(const PathDraw& draw, int64_t batch) {
  const ImageList computed = list_of(draw.images);
  for (int64_t i = 0; i < batch; ++i)
    if (path_kept(i, draw.p, draw.key))
      check(std::binary_search(computed.data, computed.data + computed.count, i), "drop_path: image ", i,
            " keeps its branch, which was not computed; kept_images() lists those that do");
}

// The branch of all images, zeros where it was not computed.
Tensor with_zeros(const Tensor& branch, const Tensor& images, int64_t batch) {
  const int64_t count = images.elements();
  std::vector<int64_t> place(static_cast<size_t>(batch), count);
  for (int64_t r = 0; r < count; ++r) place[static_cast<size_t>(images.data<int64_t>()[r])] = r;
  const Tensor zeros = Tensor::zeros(branch.shape().with(0, 1), branch.dtype(), branch.device());
  return take(concat({branch, zeros}, 0), 0, Tensor::from(place, {batch}));
}

// drop_path() of a branch that was computed of some images alone.
Tensor drop_path_of_some(const Tensor& x, const Tensor& branch, const PathDraw& draw) {
  check_images("drop_path", draw.images, x.dim(0));
  check_kept(draw, x.dim(0));
  if (!has_image_kernels(x))
    return drop_path(x, with_zeros(branch, draw.images, x.dim(0)), {draw.p, draw.key});
  const RowsSize size{x.dim(0), x.shape().elements(1, x.rank())};
  const Tensor y = Tensor::empty(x.shape(), x.dtype());
  dispatch(x, "drop_path", [&]<class Dev, class T>() {
    if constexpr (std::is_same_v<Dev, Cpu>)
      DropoutKernels<Cpu>::add_branch<T>(size, draw.p, draw.key, list_of(draw.images), x.data<T>(),
                                         branch.data<T>(), y.data<T>());
  });
  const auto backward = [=](Gradients& g) {
    g.add(0, g.dy());
    if (const InputGradient df(g, 1); df)
      dispatch(g.dy(), "drop_path", [&]<class Dev, class T>() {
        if constexpr (std::is_same_v<Dev, Cpu>)
          DropoutKernels<Cpu>::branch_gradient<T>(size.width, draw.p, draw.key, list_of(draw.images),
                                                  g.dy().data<T>(), df.target<T>());
      });
  };
  return record("drop_path", y, {x, branch}, backward);
}

}  // namespace

Tensor dropout(const Tensor& x, double p, uint64_t key) {
  check_probability(p, "dropout");
  if (p == 0) return x;
  const int64_t n = x.elements();
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  dispatch(x, "dropout", [&]<class Dev, class T>() {
    DropoutKernels<Dev>::template dropout<T>(n, p, key, x.data<T>(), {y.data<T>()});
  });
  const auto backward = [n, p, key](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(g.dy(), "dropout", [&]<class Dev, class T>() {
      DropoutKernels<Dev>::template dropout<T>(n, p, key, g.dy().data<T>(), dx.target<T>());
    });
  };
  const Tensor made = record("dropout", y, {x}, backward);
  describe_step(made, [&] {
    const NoRecording off;
    return Attributes{{"p", p},
                      {"factor", dropout(Tensor::full(x.shape(), 1, x.dtype(), x.device()), p, key)}};
  });
  return made;
}

Tensor channel_dropout(const Tensor& x, double p, uint64_t key) {
  check_probability(p, "channel_dropout");
  check(x.rank() >= 2, "channel_dropout: ", x.shape(), " has no images and channels");
  if (p == 0) return x;
  Shape one_each = x.shape();
  for (int i = 1; i + 1 < x.rank(); ++i) one_each = one_each.with(i, 1);
  return multiply(x, dropout(Tensor::full(one_each, 1, x.dtype(), x.device()), p, key));
}

Tensor kept_images(int64_t images, double p, uint64_t key) {
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < images; ++i)
    if (path_kept(i, p, key)) kept.push_back(i);
  const auto count = static_cast<int64_t>(kept.size());
  if (count == images) return {};
  return kept.empty() ? Tensor::from(std::vector<int64_t>{0}, {1}) : Tensor::from(kept, {count});
}

Tensor drop_path(const Tensor& x, const Tensor& branch, const PathDraw& draw) {
  const auto& [p, key, images] = draw;
  check_probability(p, "drop_path");
  check(x.rank() > 0, "drop_path: a scalar has no images");
  const Shape wanted = images.defined() ? x.shape().with(0, images.elements()) : x.shape();
  check(wanted == branch.shape() && x.dtype() == branch.dtype(), "drop_path: ", x.dtype(), " ", x.shape(),
        " and its branch ", branch.dtype(), " ", branch.shape(), " differ; one type and shape are wanted",
        images.defined() ? ", but for the images left out" : "");
  check_same_device("drop_path", {x, branch});
  if (images.defined()) return drop_path_of_some(x, branch, draw);
  const RowsSize size{x.dim(0), x.shape().elements(1, x.rank())};
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  dispatch(x, "drop_path", [&, p = p, key = key]<class Dev, class T>() {
    DropoutKernels<Dev>::template drop_path<T>(size, p, key, x.data<T>(), branch.data<T>(), {y.data<T>()});
  });
  const auto backward = [size, p = p, key = key](Gradients& g) {
    g.add(0, g.dy());
    if (p == 0) return g.add(1, g.dy());
    if (const InputGradient df(g, 1); df)
      dispatch(g.dy(), "drop_path", [&]<class Dev, class T>() {
        DropoutKernels<Dev>::template drop_path<T>(size, p, key, static_cast<const T*>(nullptr),
                                                   g.dy().data<T>(), df.target<T>());
      });
  };
  const Tensor made = record("drop_path", y, {x, branch}, backward);
  describe_step(made, [&, p = p, key = key] {
    const NoRecording off;
    const Tensor none = Tensor::zeros({size.rows, 1}, x.dtype(), x.device());
    return Attributes{
        {"p", p},
        {"factor", drop_path(none, Tensor::full({size.rows, 1}, 1, x.dtype(), x.device()), {p, key})}};
  });
  return made;
}

}  // namespace tessera
