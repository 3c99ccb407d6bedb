#include "engine/ops/elementwise.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/elementwise_kernels.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/reduce_sum_to.h"
#include "engine/ops/same_device.h"

namespace tessera {

namespace {

// y = f(a, b) or, with `add`, y += f(a, b); a and b broadcast to `shape`.
void run(Binary f, const Tensor& a, const Tensor& b, const Shape& shape, const Tensor& y, bool add) {
  const Walk<3> walk =
      make_walk(shape, stretched(a.shape(), shape), stretched(b.shape(), shape), row_major(shape));
  dispatch(y, "elementwise", [&]<class Dev, class T>() {
    BinaryKernels<Dev>::template forward<T>(f, walk, a.data<T>(), b.data<T>(), {y.data<T>(), add});
  });
}

// f(a, b), not recorded.
Tensor compute(Binary f, const Tensor& a, const Tensor& b, const char* what) {
  check(a.dtype() == b.dtype(), what, ": ", a.dtype(), " ", a.shape(), " and ", b.dtype(), " ", b.shape(),
        "; convert one with cast()");
  check_same_device(what, {a, b});
  check(is_float(a.dtype()), what, ": ", a.dtype(), " ", a.shape(), " is not floating");
  const Shape shape = broadcast(a.shape(), b.shape(), what);
  const Tensor y = Tensor::empty(shape, a.dtype(), a.device());
  run(f, a, b, shape, y, false);
  return y;
}

// Adds factor * f(dy, other) to the gradient of input i, of shape `shape`, summed over the axes along which
// that input was stretched.
void add_product(Gradients& g, int i, const Shape& shape, Binary f, const Tensor& dy, const Tensor& other,
                 double factor = 1) {
  if (!g.wants(i)) return;
  if (dy.shape() == shape && factor == 1) {
    const InputGradient dx(g, i);
    run(f, dy, other, shape, dx.tensor(), dx.add());
  } else {
    add_sum_to(g, i, compute(f, dy, other, "elementwise"), shape, factor);
  }
}

Tensor add_or_subtract(OpName op, Binary f, double sign, const Tensor& a, const Tensor& b) {
  const Tensor y = compute(f, a, b, op->name.data());
  const auto backward = [shape = y.shape(), sa = a.shape(), sb = b.shape(), sign](Gradients& g) {
    const Tensor dy = g.dy().reshape(shape);
    add_sum_to(g, 0, dy, sa);  // y = a + sign b
    add_sum_to(g, 1, dy, sb, sign);
  };
  return record(op, y, {a, b}, backward);
}

// f(x), not recorded.
Tensor compute(Unary f, double c, const Tensor& x, const char* what) {
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  dispatch(x, what, [&]<class Dev, class T>() {
    UnaryKernels<Dev>::template forward<T>(f, c, x.elements(), x.data<T>(), y.data<T>());
  });
  return y;
}

Tensor unary(OpName op, Unary f, const Tensor& x, double c = 0) {
  const char* what = op->name.data();
  const Tensor y = compute(f, c, x, what);
  const bool reads_y = f == Unary::exp || f == Unary::sqrt;
  const bool reads_none = f == Unary::scale || f == Unary::add_scalar;
  const Tensor saved = reads_none ? Tensor() : (reads_y ? y : x).detach();
  const auto backward = [f, c, saved, what](Gradients& g) {
    const InputGradient dx(g, 0);
    const Tensor& dy = g.dy();
    dispatch(dy, what, [&]<class Dev, class T>() {
      UnaryKernels<Dev>::template backward<T>(
          f, c, dy.elements(), saved.defined() ? saved.data<T>() : nullptr, dy.data<T>(), dx.target<T>());
    });
  };
  const Tensor made = record(op, y, {x}, backward);
  if (reads_none) describe_step(made, [&] { return Attributes{{"c", c}}; });
  return made;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return add_or_subtract("add", Binary::add, 1, a, b); }

Tensor subtract(const Tensor& a, const Tensor& b) {
  return add_or_subtract("subtract", Binary::subtract, -1, a, b);
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  const Tensor y = compute(Binary::multiply, a, b, "multiply");
  const auto backward = [shape = y.shape(), a = a.detach(), b = b.detach()](Gradients& g) {
    const Tensor dy = g.dy().reshape(shape);
    add_product(g, 0, a.shape(), Binary::multiply, dy, b);  // da = dy * b
    add_product(g, 1, b.shape(), Binary::multiply, dy, a);  // db = dy * a
  };
  return record("multiply", y, {a, b}, backward);
}

Tensor divide(const Tensor& a, const Tensor& b) {
  const Tensor y = compute(Binary::divide, a, b, "divide");
  const auto backward = [y, sa = a.shape(), b = b.detach()](Gradients& g) {
    const Tensor dy = g.dy().reshape(y.shape());
    add_product(g, 0, sa, Binary::divide, dy, b);  // da = dy / b
    if (!g.wants(1)) return;
    const Tensor dyy = compute(Binary::multiply, dy, y, "divide");
    add_product(g, 1, b.shape(), Binary::divide, dyy, b, -1);  // db = -dy * y / b
  };
  return record("divide", y, {a, b}, backward);
}

Tensor cast(const Tensor& x, DType dtype) {
  check(is_float(x.dtype()) && is_float(dtype), "cast: ", x.dtype(), " ", x.shape(), " to ", dtype,
        "; floating types are wanted");
  if (x.dtype() == dtype) return x;
  const auto backward = [from = x.dtype()](Gradients& g) { g.add(0, g.dy().to(from)); };
  return record("cast", x.to(dtype), {x}, backward);
}

Tensor scale(const Tensor& x, double c) { return unary("scale", Unary::scale, x, c); }

Tensor add_scalar(const Tensor& x, double c) { return unary("add_scalar", Unary::add_scalar, x, c); }

Tensor exp(const Tensor& x) { return unary("exp", Unary::exp, x); }
Tensor log(const Tensor& x) { return unary("log", Unary::log, x); }
Tensor sqrt(const Tensor& x) { return unary("sqrt", Unary::sqrt, x); }
Tensor square(const Tensor& x) { return unary("square", Unary::square, x); }
Tensor absolute(const Tensor& x) { return unary("absolute", Unary::absolute, x); }

Tensor at_most(const Tensor& x, double c) { return compute(Unary::at_most, c, x, "at_most"); }

}  // namespace tessera
