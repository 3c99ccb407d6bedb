#include "engine/ops/shape.h"

#include <utility>

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/reduce_sum_to.h"
#include "engine/ops/same_device.h"
#include "engine/ops/shape_kernels.h"

namespace tessera {

namespace {

// y[walk] = x[walk] or, with `add`, y[walk] += x[walk]; the walk starts at these elements of x and y.
// Fails in the name of `op`.
void copy(const char* op, const Walk<2>& walk, const Tensor& x, int64_t start_x, const Tensor& y,
          int64_t start_y, bool add) {
  dispatch(x, op, [&]<class Dev, class T>() {
    CopyKernels<Dev>::template copy<T>(walk, 1, x.data<T>() + start_x, {y.data<T>() + start_y, add});
  });
}

// The shape and strides of `from` with its axes in another order.
std::pair<Shape, Strides> permuted(const char* op, const Shape& from, const Strides& strides,
                                   const std::vector<int>& order) {
  Shape shape = from;
  Strides source{};
  std::vector<bool> named(order.size(), false);
  const auto refuse = [&] {
    fail(op, ": the order names each of the ", from.rank(), " axes of ", from, " once");
  };
  if (static_cast<int>(order.size()) != from.rank()) refuse();
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t axis = static_cast<size_t>(from.axis(order[i], op));
    if (named[axis]) refuse();
    named[axis] = true;
    shape = shape.with(static_cast<int>(i), from[order[i]]);
    source[i] = strides[axis];
  }
  return {shape, source};
}

// The shape of the concatenation; fails where the tensors do not fit.
Shape concat_shape(const std::vector<Tensor>& tensors, int axis) {
  check(!tensors.empty(), "concat: no tensors");
  const Tensor& first = tensors.front();
  const int along = first.shape().axis(axis, "concat");
  int64_t size = 0;
  for (const Tensor& x : tensors) {
    check(x.rank() == first.rank() && x.dtype() == first.dtype() &&
              x.shape().with(along, 1) == first.shape().with(along, 1),
          "concat: ", x.dtype(), " ", x.shape(), " after ", first.dtype(), " ", first.shape(), " along axis ",
          axis, "; type and all other axes are to agree");
    size += x.dim(along);
  }
  return first.shape().with(along, size);
}

}  // namespace

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  if (broadcast(x.shape(), shape, "broadcast_to") != shape)
    fail("broadcast_to: ", x.shape(), " does not stretch to ", shape);
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  copy("broadcast_to", make_walk(shape, stretched(x.shape(), shape), row_major(shape)), x, 0, y, 0, false);
  const auto backward = [from = x.shape(), shape](Gradients& g) {
    add_sum_to(g, 0, g.dy().reshape(shape), from);
  };
  return record("broadcast_to", y, {x}, backward);
}

Tensor permute(const Tensor& x, const std::vector<int>& order) {
  const Shape& from = x.shape();
  const auto [shape, source] = permuted("permute", from, row_major(from), order);
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  copy("permute", make_walk(shape, source, row_major(shape)), x, 0, y, 0, false);
  const auto backward = [shape = shape, source = source](Gradients& g) {
    const InputGradient dx(g, 0);
    copy("permute", make_walk(shape, row_major(shape), source), g.dy(), 0, dx.tensor(), 0, dx.add());
  };
  const Tensor made = record("permute", y, {x}, backward);
  describe_step(made, [&] {
    std::vector<int64_t> axes;
    for (const int axis : order) axes.push_back(from.axis(axis));
    return Attributes{{"order", axes}};
  });
  return made;
}

Tensor permuted_entry(const Tensor& x, int axis, int64_t i, const std::vector<int>& order) {
  check(!Tape::recording(), "permuted_entry: a tape records, which slice and permute are for");
  const int gone = x.shape().axis(axis, "permuted_entry");
  check(i >= 0 && i < x.dim(gone), "permuted_entry: entry ", i, " of axis ", axis, " of ", x.shape(),
        ", which has ", x.dim(gone));
  const Strides strides = row_major(x.shape());
  std::vector<int64_t> sizes;
  Strides others{};
  for (int a = 0; a < x.rank(); ++a)
    if (a != gone) {
      others[sizes.size()] = strides[static_cast<size_t>(a)];
      sizes.push_back(x.dim(a));
    }
  const auto [shape, source] = permuted("permuted_entry", Shape(sizes), others, order);
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  copy("permuted_entry", make_walk(shape, source, row_major(shape)), x,
       i * strides[static_cast<size_t>(gone)], y, 0, false);
  return y;
}

Tensor transpose(const Tensor& x) {
  check(x.rank() >= 2, "transpose: ", x.shape(), " has no two axes to exchange");
  std::vector<int> order(static_cast<size_t>(x.rank()));
  for (int i = 0; i < x.rank(); ++i) order[static_cast<size_t>(i)] = i;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute(x, order);
}

Tensor concat(const std::vector<Tensor>& tensors, int axis) {
  const Shape shape = concat_shape(tensors, axis);
  const std::vector<Input> inputs(tensors.begin(), tensors.end());
  check_same_device("concat", inputs);
  const Strides strides = row_major(shape);
  const int64_t step = strides[static_cast<size_t>(shape.axis(axis))];  // of one entry of the axis
  const Tensor y = Tensor::empty(shape, tensors.front().dtype(), tensors.front().device());
  std::vector<Shape> parts;
  int64_t start = 0;
  for (const Tensor& x : tensors) {
    copy("concat", make_walk(x.shape(), row_major(x.shape()), strides), x, 0, y, start, false);
    start += x.dim(axis) * step;
    parts.push_back(x.shape());
  }
  const auto backward = [parts, strides, step, axis](Gradients& g) {
    int64_t from = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (const InputGradient dx(g, static_cast<int>(i)); dx)  // dx_i = its slice of dy
        copy("concat", make_walk(parts[i], strides, row_major(parts[i])), g.dy(), from, dx.tensor(), 0,
             dx.add());
      from += parts[i][axis] * step;
    }
  };
  const Tensor made = record("concat", y, inputs, backward);
  describe_step(made, [&] { return Attributes{{"axis", static_cast<double>(shape.axis(axis))}}; });
  return made;
}

Tensor slice(const Tensor& x, int axis, int64_t first, int64_t count) {
  const int along = x.shape().axis(axis, "slice");
  check(first >= 0 && count >= 0 && first <= x.dim(along) && count <= x.dim(along) - first, "slice: ", count,
        " entries from entry ", first, " of axis ", axis, " of ", x.shape(), ", which has ", x.dim(along));
  const Shape shape = x.shape().with(along, count);
  const Strides strides = row_major(x.shape());
  const int64_t start = first * strides[static_cast<size_t>(along)];
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  copy("slice", make_walk(shape, strides, row_major(shape)), x, start, y, 0, false);
  const auto backward = [shape, strides, start](Gradients& g) {
    const InputGradient dx(g, 0);
    if (!dx.add())
      dispatch(dx.tensor(), "slice", [&]<class Dev, class T>() {
        CopyKernels<Dev>::template zero<T>(dx.tensor().elements(), dx.tensor().data<T>());
      });
    copy("slice", make_walk(shape, row_major(shape), strides), g.dy(), 0, dx.tensor(), start, dx.add());
  };
  const Tensor made = record("slice", y, {x}, backward);
  describe_step(made, [&] {
    return Attributes{{"axis", static_cast<double>(along)},
                      {"first", static_cast<double>(first)},
                      {"count", static_cast<double>(count)}};
  });
  return made;
}

Tensor gather(const Tensor& x, const Tensor& index) {
  check(x.rank() > 0, "gather: a scalar has no rows");
  check(index.dtype() == DType::i64, "gather: index ", index.dtype(), " ", index.shape(), "; i64 is wanted");
  check_same_device("gather", {x, index});
  Shape shape = index.shape();
  for (int i = 1; i < x.rank(); ++i) shape = shape.inserted(shape.rank(), x.dim(i));
  const GatherSize size{x.dim(0), index.elements(), x.shape().elements(1, x.rank())};
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  dispatch(x, "gather", [&]<class Dev, class T>() {
    const int64_t bad = IndexKernels<Dev>::first_outside(size.count, size.table_rows, index.data<int64_t>());
    if (bad >= 0)
      fail("gather: index ", index.integers()[static_cast<size_t>(bad)], " at position ", bad, ", the table ",
           x.shape(), " has rows 0 to ", size.table_rows - 1);
    GatherKernels<Dev>::template forward<T>(size, index.data<int64_t>(), x.data<T>(), y.data<T>());
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(g.dy(), "gather", [&]<class Dev, class T>() {
      GatherKernels<Dev>::template backward<T>(size, index.data<int64_t>(), g.dy().data<T>(), dx.target<T>());
    });
  };
  const Tensor made = record("gather", y, {x}, backward);
  describe_step(made, [&] { return Attributes{{"index", index.detach()}}; });
  return made;
}

}  // namespace tessera
