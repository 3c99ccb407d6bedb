#include "engine/ops/linear.h"

#include <doctest/doctest.h>
#include <tbb/task_arena.h>

#include <array>
#include <vector>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/ops/linear_kernels.h"
#include "engine/ops/matmul.h"

using namespace tessera;

TEST_CASE("linear: hand values, forward and backward") {
  const Tensor x = Tensor::from({1, 2, 3, 4}, {2, 2}).require_grad();
  const Tensor w = Tensor::from({1, -1, 0, 2, 1, 1}, {3, 2}).require_grad();
  const Tensor b = Tensor::from({10, 20, -4}, {3}).require_grad();
  Tape tape;
  const Tensor y = linear(x, w, b, Activation::relu);
  CHECK(y.values() == std::vector<double>{9, 24, 0, 9, 28, 3});
  tape.backward(y, Tensor::from({1, 1, 1, 1, 10, 100}, {2, 3}));
  CHECK(x.grad().values() == std::vector<double>{1, 1, 101, 119});
  CHECK(w.grad().values() == std::vector<double>{4, 6, 31, 42, 300, 400});
  CHECK(b.grad().values() == std::vector<double>{2, 11, 100});
}

TEST_CASE("linear: nothing is saved and nothing bends where nothing is recorded") {
  const Tensor x = random_tensor({5, 4}, 1), w = random_tensor({3, 4}, 2), b = random_tensor({3}, 3);
  const Tensor evaluated = linear(x, w, b, Activation::gelu);
  const Tensor leaf = x.clone().require_grad();
  Tape tape;
  CHECK(relative_error(linear(leaf, w, b, Activation::gelu).detach(), evaluated) == 0);
}

TEST_CASE("linear: each gradient alone") {
  const std::array<Tensor, 3> values{random_tensor({7, 5}, 1), random_tensor({4, 5}, 2),
                                     random_tensor({4}, 3)};
  const Tensor dy = random_tensor({7, 4}, 4);
  const auto run = [&](std::array<bool, 3> wanted) {
    std::array<Tensor, 3> in;
    for (size_t i = 0; i < 3; ++i) {
      in[i] = values[i].clone();
      if (wanted[i]) in[i].require_grad();
    }
    Tape tape;
    tape.backward(linear(in[0], in[1], in[2], Activation::tanh), dy);
    return in;
  };
  const auto all = run({true, true, true});
  for (size_t i = 0; i < 3; ++i) {
    std::array<bool, 3> wanted{};
    wanted[i] = true;
    CHECK(relative_error(run(wanted)[i].grad(), all[i].grad()) == 0);
  }
}

// linear against BLAS at sizes that exceed a panel, a tile, a group, a block of the depth, and the memory of
// the sums.
TEST_CASE("linear: large sizes agree with matmul") {
  const std::vector<std::array<int64_t, 3>> sizes{{1300, 48, 50}, {70, 1700, 30},     {40, 70, 1600},
                                                  {9000, 3, 5},   {1060, 1700, 1700}, {4100, 1030, 1030}};
  for (const auto& size : sizes) {
    const int64_t rows = size[0], in = size[1], out = size[2];
    CAPTURE(rows);
    CAPTURE(in);
    CAPTURE(out);
    const OpCase::Function fused = [](auto x) { return linear(x[0], x[1], {}); };
    const OpCase::Function plain = [](auto x) { return matmul(x[0], x[1], false, true); };
    const OpCase c{"linear", "", {random_tensor({rows, in}, 1), random_tensor({out, in}, 2)}, fused};
    const Run a = run_case(c, fused, DType::f32), b = run_case(c, plain, DType::f32);
    CHECK(relative_error(a.output, b.output) < 1e-5);
    for (size_t i = 0; i < 2; ++i) CHECK(relative_error(a.gradients[i], b.gradients[i]) < 1e-5);
  }
}

TEST_CASE("linear: a large weight in bf16, whose gradient is summed by slabs") {
  const OpCase::Function f = [](auto x) { return linear(x[0], x[1], {}, Activation::gelu); };
  const auto rounded = [](const Tensor& x) { return x.to(DType::bf16).to(DType::f64); };
  const OpCase c{
      "linear", "", {rounded(random_tensor({1060, 1700}, 1)), rounded(random_tensor({1700, 1700}, 2))}, f};
  const Run wide = run_case(c, f, DType::f32), narrow = run_case(c, f, DType::bf16);
  CHECK(relative_error(narrow.output.to(DType::f32), wide.output) < 0.01);
  for (size_t i = 0; i < 2; ++i)
    CHECK(relative_error(narrow.gradients[i].to(DType::f32), wide.gradients[i]) < 0.02);
}

// Eight groups of rows suit three threads, but neither six nor sixteen, which share the outputs of each; a
// large weight has one sum.
TEST_CASE("linear: the same bits on any number of threads") {
  const OpCase::Function f = [](auto x) { return linear(x[0], x[1], x[2], Activation::gelu); };
  const auto run_on = [&](int team, const std::array<int64_t, 3>& size, DType dtype) {
    const auto [rows, in, out] = size;
    const OpCase c{"linear",
                   "",
                   {random_tensor({rows, in}, 1), random_tensor({out, in}, 2), random_tensor({out}, 3)},
                   f};
    set_threads(team);
    const Run run = tbb::task_arena(team).execute([&] {
      REQUIRE(threads() == team);
      return run_case(c, f, dtype);
    });
    set_threads(0);
    return run;
  };
  const auto check_size = [&](const std::array<int64_t, 3>& size, DType dtype) {
    CAPTURE(dtype);
    CAPTURE(size);
    const Run alone = run_on(1, size, dtype);
    for (const int team : {3, 6, 16}) {
      CAPTURE(team);
      const Run shared = run_on(team, size, dtype);
      CHECK(relative_error(shared.output, alone.output) == 0);
      for (size_t i = 0; i < 3; ++i) {
        CAPTURE(i);
        CHECK(relative_error(shared.gradients[i], alone.gradients[i]) == 0);
      }
    }
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    check_size({4200, 70, 130}, dtype);
    check_size({4160, 40, 48}, dtype);
    check_size({1000, 100, 700}, dtype);
    const SmallChunks chunks(16);  // with whole groups of 16 rows
    check_size({150, 1030, 1030}, dtype);
  }
}

TEST_CASE("linear: no rows") {
  const Tensor w = random_tensor({3, 4}, 1).require_grad(), b = random_tensor({3}, 2).require_grad();
  Tape tape;
  const Tensor y = linear(Tensor::empty({2, 0, 4}, DType::f64), w, b);
  CHECK(y.shape() == Shape{2, 0, 3});
  tape.backward(y, Tensor::empty(y.shape(), DType::f64));
  CHECK(w.grad().values() == std::vector<double>(12, 0.0));
  CHECK(b.grad().values() == std::vector<double>(3, 0.0));
}

TEST_CASE("linear: errors") {
  const Tensor x = Tensor::empty({32, 65, 192});
  const auto fails_with = [](const char* text, const Tensor& in, const Tensor& weight, const Tensor& bias) {
    CHECK_THROWS_WITH_AS(linear(in, weight, bias), text, Error);
  };
  fails_with("linear: input [32, 65, 192] has 192 columns, weight [384, 256] takes 256", x,
             Tensor::empty({384, 256}), {});
  fails_with("linear: weight [384, 192] takes a bias [384], not [192]", x, Tensor::empty({384, 192}),
             Tensor::empty({192}));
  fails_with("linear: input f32 [32, 65, 192] takes parameters f32, not f64 [384, 192]", x,
             Tensor::empty({384, 192}, DType::f64), {});
  fails_with("linear: input [] and weight [3, 1] should be [..., K] and [N, K]", Tensor::empty({}),
             Tensor::empty({3, 1}), {});
  fails_with("linear: input [3] and weight [3] should be [..., K] and [N, K]", Tensor::empty({3}),
             Tensor::empty({3}), {});
}
