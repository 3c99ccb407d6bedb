#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "engine/autograd/tape.h"
#include "engine/core/error.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "tests/autograd/leaf.h"
#include "tests/error_of.h"

// Several tapes: hidden by NoRecording, one inside another, ended, of another thread.

using namespace tessera;
using Values = std::vector<double>;

namespace {

constexpr const char* ended =
    "scale: input [1] is a value of a tape that has ended, its gradient can flow no more; keep the tape "
    "alive, "
    "or detach() the value";

}  // namespace

TEST_CASE("tape: nothing is recorded while a NoRecording lives") {
  const Tensor w = leaf({2});
  Tape tape;
  Tensor constant;
  {
    const NoRecording pause;
    CHECK(Tape::recording() == nullptr);
    constant = scale(w, 10);
    { const NoRecording again; }
    CHECK(Tape::recording() == nullptr);
  }
  CHECK(Tape::recording() == &tape);
  tape.backward(sum(multiply(w, constant)));
  CHECK(w.grad().values() == Values{20});
}

TEST_CASE("tape: tapes nest; the innermost records, and an outer value is a constant to it") {
  const Tensor w = leaf({3});
  Tape outer;
  const Tensor h = multiply(w, w);
  {
    Tape inner;
    const Tensor v = Tensor::from({5}, {1}, DType::f64).require_grad();
    inner.backward(sum(multiply(multiply(v, h), w)));
    CHECK(v.grad().values() == Values{27});
    CHECK(w.grad().values() == Values{45});
    CHECK(outer.steps().size() == 1);
  }
  CHECK(Tape::recording() == &outer);
  w.zero_grad();
  outer.backward(sum(multiply(h, w)));
  CHECK(w.grad().values() == Values{27});
  CHECK(outer.gradient(w).values() == Values{27});
}

TEST_CASE("tape: a leaf keeps its gradient on the outer tape after an inner one has met it") {
  const Tensor w = leaf({3});
  Tape outer;
  const Tensor y = sum(multiply(w, w));
  outer.keep(w);
  {
    Tape inner;
    inner.backward(sum(w));
  }
  w.zero_grad();
  outer.backward(y);
  CHECK(outer.gradient(w).values() == Values{6});
}

TEST_CASE("tape: a value of a tape that has ended is an error, with or without another tape") {
  const Tensor w = leaf({1});
  Tensor stale;
  {
    Tape tape;
    stale = scale(w, 2);
  }
  CHECK_THROWS_WITH_AS(scale(stale, 1), ended, Error);
  CHECK(scale(stale.detach(), 3).item() == 6);
  Tape tape;
  CHECK_THROWS_WITH_AS(scale(stale, 1), ended, Error);
  CHECK_THROWS_WITH_AS(
      tape.backward(stale),
      "tape: backward of [1], which this tape did not record; was it made before the tape, or detached?",
      Error);
}

TEST_CASE("tape: a value of another thread's tape is an error") {
  const Tensor w = leaf({1});
  Tape tape;
  const Tensor h = scale(w, 2);
  std::string error;
  std::thread([&] {
    Tape theirs;
    error = error_of([&] { scale(h, 3); });
  }).join();
  CHECK(error == ended);
}
