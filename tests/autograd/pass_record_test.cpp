#include "engine/autograd/pass_record.h"

#include <doctest/doctest.h>

#include "engine/autograd/observe.h"
#include "engine/autograd/tape.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "tests/error_of.h"

using namespace tessera;

namespace {

using Values = std::vector<double>;

const std::string outer = "block", inner = "block.scale";

// y = (w c) + w inside a block, with the product in a module of its own; loss = sum(y^2).
struct Pass {
  Tensor w = Tensor::from({1, -2}, {2}, DType::f64).require_grad();
  Tensor c = Tensor::from({3, 5}, {2}, DType::f64);
  Tape tape;
  Tensor loss;

  explicit Pass(bool keep = true) {
    if (keep) tape.keep_all();
    Tensor y;
    {
      const ModuleScope block(outer);
      Tensor product;
      {
        const ModuleScope scaled(inner);
        product = multiply(w, c);
      }
      y = add(product, w);
    }
    const Tensor squares = square(y);
    name_value(squares, "squares");
    loss = sum(squares);
    tape.backward(loss);
  }
};

}  // namespace

TEST_CASE("record: every value has its number, its gradient and its name") {
  const Pass pass;
  const PassRecord record(pass.tape, {{"w", pass.w}, {"c", pass.c}, {"loss", pass.loss}});
  CHECK(record.value("w").kind == PassRecord::Kind::leaf);
  CHECK(record.value("c").kind == PassRecord::Kind::constant);
  CHECK_FALSE(record.value("c").gradient.defined());
  CHECK(record.value("block.scale.out").value.values() == Values{3, -10});
  CHECK(record.value("block.out").value.values() == Values{4, -12});
  CHECK(record.value("block.out").gradient.values() == Values{8, -24});  // 2 y
  CHECK(record.value("squares").gradient.values() == Values{1, 1});
  CHECK(record.value("w").gradient.values() == Values{8 * 4, -24 * 6});  // 2 y (c + 1)
  CHECK(record.value("loss").value.item() == 16 + 144);
}

TEST_CASE("record: steps name what they read and make, in order") {
  const Pass pass;
  const PassRecord record(pass.tape, {{"w", pass.w}, {"c", pass.c}, {"loss", pass.loss}});
  std::string text;
  for (const PassRecord::Step& step : record.steps()) {
    text += std::string(step.op->name) + " [" + step.module + "]";
    for (const size_t i : step.inputs)
      text += " " + (i == PassRecord::left_out ? std::string("-") : record.values()[i].name);
    text += " -> " + record.values()[step.output].name + "\n";
  }
  CHECK(text ==
        "multiply [block.scale] w c -> block.scale.out\n"
        "add [block] block.scale.out w -> block.out\n"
        "square [] block.out -> squares\n"
        "sum [] squares -> loss\n");
}

TEST_CASE("record: names without a role are those of ops, numbered from the second on") {
  const Tensor w = Tensor::from({2}, {1}).require_grad();
  Tape tape;
  tape.keep_all();
  tape.backward(square(square(w)));
  const PassRecord record(tape, {});
  CHECK(record.value("leaf").gradient.item() == doctest::Approx(32));
  CHECK(record.value("square").value.item() == 4);
  CHECK(record.value("square.2").value.item() == 16);
}

TEST_CASE("record: unknown names suggest the nearest, and a tape must have kept its values") {
  const Pass pass;
  const PassRecord record(pass.tape, {{"w", pass.w}});
  CHECK(error_of([&] { (void)record.value("block.ot"); }) ==
        "record: no value 'block.ot'; did you mean 'block.out'?");
  const Pass forgetful(false);
  CHECK(error_of([&] {
          const PassRecord none(forgetful.tape, {});
        }).find("call keep_all() before the first op") != std::string::npos);
}
