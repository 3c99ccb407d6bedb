#include "engine/ops/reduce.h"

#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/reduce_kernels.h"
#include "engine/ops/reduce_sum_to.h"
#include "engine/ops/shape_kernels.h"

namespace tessera {

Fold::Fold(const Shape& from, const Shape& to) {
  const Strides x = row_major(from), y = stretched(to, from);
  Walk<2> all;  // in x's order; a summed axis has stride 0 in y
  for (int i = 0; i < from.rank(); ++i) {
    const size_t axis = static_cast<size_t>(i);
    all.append(from[i], {x[axis], y[axis]});
  }
  for (int i = 0; i < all.rank; ++i) {
    const size_t axis = static_cast<size_t>(i);
    const bool keeps = all.stride[1][axis] != 0;
    if (i == all.rank - 1) {
      width = all.size[axis];
      width_kept = keeps;
    } else if (keeps) {
      kept.append(all.size[axis], {all.stride[0][axis], all.stride[1][axis]});
    } else {
      summed.append(all.size[axis], {all.stride[0][axis]});
    }
  }
}

namespace {

void run_sum(const char* op, const Shape& from, const Shape& to, double factor, const Tensor& x,
             const Tensor& y, bool add) {
  dispatch(x, op, [&]<class Dev, class T>() {
    ReduceKernels<Dev>::template sum<T>(Fold(from, to), factor, x.data<T>(), {y.data<T>(), add});
  });
}

// `shape` with the named axes at size 1.
Shape folded(const Shape& shape, const std::vector<int>& axes, const char* what) {
  Shape result = shape;
  std::vector<bool> named(static_cast<size_t>(shape.rank()), false);
  for (const int i : axes) {
    const size_t axis = static_cast<size_t>(shape.axis(i, what));
    check(!named[axis], what, ": axis ", i, " of ", shape, " is named twice");
    named[axis] = true;
    result = result.with(i, 1);
  }
  return result;
}

Shape without_axes(Shape shape, const std::vector<int>& axes) {
  std::vector<int64_t> left;
  for (int i = 0; i < shape.rank(); ++i) {
    const auto is_i = [&](int axis) { return shape.axis(axis) == i; };
    if (std::none_of(axes.begin(), axes.end(), is_i)) left.push_back(shape[i]);
  }
  return Shape(std::span<const int64_t>(left));
}

// y = factor * sum of x over the axes.
Tensor reduce(OpName op, const Tensor& x, const std::vector<int>& axes, bool keep, bool is_mean) {
  const Shape from = x.shape(), to = folded(from, axes, op->name.data());
  const double factor =
      is_mean ? static_cast<double>(to.elements()) / static_cast<double>(from.elements()) : 1;
  const Tensor y = Tensor::empty(keep ? to : without_axes(from, axes), x.dtype(), x.device());
  run_sum(op->name.data(), from, to, factor, x, y, false);
  const auto backward = [from, to, factor](Gradients& g) {
    const InputGradient dx(g, 0);
    const Tensor& dy = g.dy();
    const Walk<2> walk = make_walk(from, stretched(to, from), row_major(from));
    dispatch(dy, "sum", [&]<class Dev, class T>() {
      CopyKernels<Dev>::template copy<T>(walk, factor, dy.data<T>(), dx.target<T>());
    });
  };
  const Tensor made = record(op, y, {x}, backward);
  describe_step(made, [&] {
    std::vector<int64_t> named;
    for (const int axis : axes) named.push_back(from.axis(axis));
    return Attributes{{"axes", named}};
  });
  return made;
}

std::vector<int> all_axes(const Tensor& x) {
  std::vector<int> axes(static_cast<size_t>(x.rank()));
  for (int i = 0; i < x.rank(); ++i) axes[static_cast<size_t>(i)] = i;
  return axes;
}

}  // namespace

void add_sum_to(Gradients& g, int i, const Tensor& dy, const Shape& shape, double factor) {
  if (!g.wants(i)) return;
  if (dy.shape() == shape && factor == 1) return g.add(i, dy);
  const InputGradient dx(g, i);
  run_sum("sum", dy.shape(), shape, factor, dy, dx.tensor(), dx.add());
}

Tensor sum(const Tensor& x) { return sum(x, all_axes(x)); }
Tensor mean(const Tensor& x) { return mean(x, all_axes(x)); }

Tensor sum(const Tensor& x, const std::vector<int>& axes, bool keep) {
  return reduce("sum", x, axes, keep, false);
}

Tensor mean(const Tensor& x, const std::vector<int>& axes, bool keep) {
  check(x.elements() > 0, "mean: ", x.shape(), " has no elements");
  return reduce("mean", x, axes, keep, true);
}

Tensor max(const Tensor& x, int axis, bool keep) {
  const Shape kept = folded(x.shape(), {axis}, "max");
  const int along = x.shape().axis(axis);
  const AxisSize size{x.shape().elements(0, along), x.dim(axis), x.shape().elements(along + 1, x.rank())};
  check(size.count > 0, "max: axis ", axis, " of ", x.shape(), " has no entry");
  const Tensor y = Tensor::empty(keep ? kept : x.shape().without(axis), x.dtype(), x.device());
  const Tensor at = Tensor::empty(kept, DType::i64, x.device());
  dispatch(x, "max", [&]<class Dev, class T>() {
    MaxKernels<Dev>::template forward<T>(size, x.data<T>(), y.data<T>(), at.data<int64_t>());
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(g.dy(), "max", [&]<class Dev, class T>() {
      MaxKernels<Dev>::template backward<T>(size, g.dy().data<T>(), at.data<int64_t>(), dx.target<T>());
    });
  };
  const Tensor made = record("max", y, {x}, backward);
  describe_step(made, [&] { return Attributes{{"axis", static_cast<double>(along)}}; });
  return made;
}

}  // namespace tessera
