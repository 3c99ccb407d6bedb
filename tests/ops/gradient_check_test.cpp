#include "engine/check/gradient_check.h"

#include <doctest/doctest.h>
#include <tbb/task_arena.h>

#include <string>

#include "engine/autograd/tape.h"
#include "engine/core/parallel.h"
#include "engine/ops/catalog.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/input_gradient.h"

using namespace tessera;

namespace {

using In = std::span<const Tensor>;

void set(const Tensor& x, int64_t i, double value) {
  if (x.dtype() == DType::f64) x.data<double>()[i] = value;
  if (x.dtype() == DType::f32) x.data<float>()[i] = static_cast<float>(value);
  if (x.dtype() == DType::bf16) x.data<bf16>()[i] = bf16(static_cast<float>(value));
}

// y = x^2 computed in chunks: value(x, chunk's first element) and slope(x); a test plants a fault in one of
// them.
template <class Value, class Slope> OpCase squares(Value value, Slope slope, bool parallel = true) {
  const auto function = [=](In in) {
    const Tensor x = in[0].detach(), y = Tensor::empty(x.shape(), x.dtype());
    const auto each = [=](const Tensor& to, auto f) {
      const int64_t n = x.elements(), grain = parallel ? chunk_length(n) : n;
      parallel_for(n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) set(to, i, f(i, begin));
      });
    };
    each(y, [=](int64_t i, int64_t begin) { return value(x.values()[static_cast<size_t>(i)], begin); });
    return record("square", y, {in[0]}, [=](Gradients& g) {
      const Tensor dx = Tensor::empty(x.shape(), x.dtype());
      each(dx, [=](int64_t i, int64_t) {
        const size_t k = static_cast<size_t>(i);
        return g.dy().values()[k] * slope(x.values()[k]);
      });
      g.add(0, dx);
    });
  };
  return {"square", "", {random_tensor({4, 5}, 1)}, function};
}

double square_of(double x, int64_t) { return x * x; }
double twice(double x) { return 2 * x; }

// Whether a failure of the case's checks holds `text`.
bool fails_with(const OpCase& op_case, const std::string& text) {
  for (const std::string& failure : check_case(op_case))
    if (failure.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("check_case: finds nothing where nothing is wrong") {
  for (const std::string& failure : check_case(squares(square_of, twice))) FAIL_CHECK(failure);
}

TEST_CASE("check_case: finds a wrong slope") {
  const OpCase wrong = squares(square_of, [](double x) { return 1.999 * x; });
  CHECK(fails_with(wrong, "the gradient is off by"));
}

TEST_CASE("check_case: finds a loop that no thread shares, and one that is said not to be shared") {
  OpCase alone = squares(square_of, twice, false);
  CHECK(fails_with(alone, "no loop of the forward pass has more than one chunk"));
  CHECK(fails_with(alone, "no loop of the backward pass has more than one chunk"));
  alone.unsplit_forward = alone.unsplit_backward = "it is said so";
  CHECK(check_case(alone).empty());
  OpCase shared = squares(square_of, twice);
  shared.unsplit_backward = "it is said so";
  CHECK(fails_with(shared, "the backward pass has several chunks, though the case says: it is said so"));
}

TEST_CASE("check_case: finds a value that depends on the chunks") {
  const auto first_only = [](double x, int64_t begin) { return begin == 0 ? x * x : x * x + 1e-6; };
  CHECK(fails_with(squares(first_only, twice), "f64 in short chunks: the output is off by"));
}

TEST_CASE("check_case: finds bits that depend on the number of threads") {
  if (threads() == 1) return;  // nothing to compare with
  const auto threads_seen = [](double x, int64_t) {
    return x * x * (tbb::this_task_arena::max_concurrency() == 1 ? 1 : 1 + 1e-6);
  };
  CHECK(fails_with(squares(threads_seen, twice), "one thread and many give different bits"));
}

TEST_CASE("check_case: finds a gradient that is written where it should be added") {
  OpCase wrong{"scale", "", {random_tensor({4, 5}, 1)}, [](In in) {
                 const Tensor x = in[0].detach();
                 return record("scale", scale(x, 1), {in[0]}, [](Gradients& g) {
                   const InputGradient dx(g, 0);
                   dx.tensor().copy_from(g.dy());  // whatever dx.add() says
                 });
               }};
  CHECK(fails_with(wrong, "backward 2 times leaves another gradient in input 0 than it should add"));
}

TEST_CASE("check_case: finds a plain twin that computes something else") {
  OpCase wrong = squares(square_of, twice);
  wrong.plain = [](In in) { return scale(square(in[0]), 1 + 1e-9); };
  CHECK(fails_with(wrong, "the plain twin: the output is off by"));
}
