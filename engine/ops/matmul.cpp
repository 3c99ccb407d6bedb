#include "engine/ops/matmul.h"

#include <optional>

#include "engine/autograd/tape.h"
#include "engine/core/scratch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/matmul_kernels.h"
#include "engine/ops/same_device.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

Shape leading(const Shape& shape) {
  return Shape(std::span(shape.begin(), shape.begin() + shape.rank() - 2));
}

Shape with_matrix(const Shape& leading, int64_t rows, int64_t columns) {
  return leading.inserted(-1, rows).inserted(-1, columns);
}

// The step, in matrices, from one product's operand to the next: 1 if the operand has all leading axes of y,
// 0 if one matrix serves all products; no value where only some axes broadcast.
std::optional<int64_t> step_in(const Shape& operand, const Shape& y) {
  if (operand.elements() == y.elements()) return 1;
  if (operand.elements() == 1) return 0;
  return std::nullopt;
}

void multiply(const Products& products, const Tensor& a, const Tensor& b, const Tensor& c, bool add) {
  dispatch_with_scratch(c, "matmul", [&]<class Dev, class T>() {
    MatmulKernels<Dev>::template multiply<T>(products, a.data<T>(), b.data<T>(), {c.data<T>(), add});
  });
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  check(a.rank() >= 2 && b.rank() >= 2, "matmul: ", a.shape(), " and ", b.shape(), " are not both matrices");
  check(a.dtype() == b.dtype(), "matmul: ", a.dtype(), " ", a.shape(), " and ", b.dtype(), " ", b.shape(),
        "; convert one with cast()");
  check_same_device("matmul", {a, b});
  const int64_t m = a.dim(transpose_a ? -1 : -2), k = a.dim(transpose_a ? -2 : -1),
                n = b.dim(transpose_b ? -2 : -1);
  const int64_t b_rows = b.dim(transpose_b ? -1 : -2);
  check(k == b_rows, "matmul: ", a.shape(), transpose_a ? " transposed" : "", " has ", k, " columns, ",
        b.shape(), transpose_b ? " transposed" : "", " has ", b_rows, " rows");
  const Shape batch = broadcast(leading(a.shape()), leading(b.shape()), "matmul");
  const auto a_step = step_in(leading(a.shape()), batch), b_step = step_in(leading(b.shape()), batch);
  if (!a_step)
    return matmul(broadcast_to(a, with_matrix(batch, a.dim(-2), a.dim(-1))), b, transpose_a, transpose_b);
  if (!b_step)
    return matmul(a, broadcast_to(b, with_matrix(batch, b.dim(-2), b.dim(-1))), transpose_a, transpose_b);

  const int64_t count = batch.elements(), a_size = *a_step * m * k, b_size = *b_step * k * n, y_size = m * n;
  const Tensor y = Tensor::empty(with_matrix(batch, m, n), a.dtype(), a.device());
  multiply({count, m, n, k, transpose_a, transpose_b, a_size, b_size, y_size}, a, b, y, false);
  // An operand is read only for the gradient of the other one.
  const Tensor a_read = wants_gradient({b}) ? a.detach() : Tensor();
  const Tensor b_read = wants_gradient({a}) ? b.detach() : Tensor();
  const auto backward = [=](Gradients& g) {
    if (const InputGradient da(g, 0); da && transpose_a)  // da = b dy^T
      multiply({count, k, m, n, transpose_b, true, b_size, y_size, a_size}, b_read, g.dy(), da.tensor(),
               da.add());
    else if (da)  // da = dy b^T
      multiply({count, m, k, n, false, !transpose_b, y_size, b_size, a_size}, g.dy(), b_read, da.tensor(),
               da.add());
    if (const InputGradient db(g, 1); db && transpose_b)  // db = dy^T a
      multiply({count, n, k, m, true, transpose_a, y_size, a_size, b_size}, g.dy(), a_read, db.tensor(),
               db.add());
    else if (db)  // db = a^T dy
      multiply({count, k, n, m, !transpose_a, false, a_size, y_size, b_size}, a_read, g.dy(), db.tensor(),
               db.add());
  };
  const Tensor made = record("matmul", y, {a, b}, backward, count * m * n * k);
  describe_step(made, [&] {
    return Attributes{{"transpose_a", transpose_a ? 1.0 : 0.0}, {"transpose_b", transpose_b ? 1.0 : 0.0}};
  });
  return made;
}

}  // namespace tessera
