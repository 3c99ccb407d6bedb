#include "apps/inspector/rounding.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "apps/inspector/pass.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/linear.h"
#include "engine/ops/reduce.h"

using namespace tessera;

namespace {

// The largest difference of two tensors against the largest size in the second.
double difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> ours = a.values(), theirs = b.values();
  double most = 0, size = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    most = std::max(most, std::abs(ours[i] - theirs[i]));
    size = std::max(size, std::abs(theirs[i]));
  }
  return size == 0 ? most : most / size;
}

// The pass as training runs it, in f32, with the fused ops; its loss and the parameters' gradients.
double fast_pass(const PassInputs& pass) {
  TensorMap inputs = pass.inputs;
  pass.model.parameters.zero_grad();
  Tape tape;
  Pass state{.training = pass.training, .random = Random(0), .drop = false};
  const TensorMap outputs = pass.model.evaluate(inputs, state);
  tape.backward(entry(outputs, "loss"));
  return entry(outputs, "loss").item();
}

}  // namespace

TEST_CASE("rounding: loss and every parameter's gradient are the fast path's") {
  for (const char* name : {"sl-vit", "sp-vit", "swin", "rmt", "dit", "segment", "resnet-train", "cait"}) {
    CAPTURE(name);
    const PassInputs pass =
        inputs_of_fixture(TESSERA_FIXTURES "/" + std::string(name) + ".safetensors", DType::f32);
    const InspectedPass seen = inspect_pass(pass);
    const double loss = fast_pass(pass);
    CHECK(seen.loss == doctest::Approx(loss).epsilon(1e-4));
    int compared = 0;
    for (const Parameter& p : pass.model.parameters) {
      const auto& values = seen.record.values();
      const auto found = std::ranges::find(values, p.name, &PassRecord::Value::name);
      if (found == values.end() || !found->gradient.defined()) continue;
      CAPTURE(p.name);
      // Relative to the largest gradient of the tensor; a key's bias has a gradient of rounding errors alone.
      const bool nothing = difference(found->gradient, Tensor::zeros(found->gradient.shape())) < 1e-6;
      CHECK((nothing || difference(found->gradient, p.value.grad()) < 2e-3));
      ++compared;
    }
    CHECK(compared > 10);
  }
}

TEST_CASE(
    "rounding: a value is the nearest float of what its op makes in double, a gradient of its whole sum") {
  const Tensor x = Tensor::from({0.1f, 0.2f, 0.3f, -0.4f, 0.7f, 1.1f}, {2, 3}, DType::f64).require_grad();
  const Tensor w = Tensor::from({0.3f, 0.9f, -0.2f, 1.3f, 0.6f, 0.7f}, {2, 3}, DType::f64).require_grad();
  Tape tape;
  tape.keep_all();
  RoundingScope rounding(tape);
  const Tensor y = linear(x, w, Tensor());
  const Tensor loss = sum(add(multiply(y, y), y));
  tape.backward(loss);
  const PassRecord record(tape, {{"x", x}, {"w", w}, {"y", y}, {"loss", loss}});
  const Roundings roundings = rounding.finish(record);
  const std::vector<double> xs = x.values(), ws = w.values(), ys = record.value("y").value.values(),
                            dys = record.value("y").gradient.values(),
                            dws = record.value("w").gradient.values();
  const auto nearest = [](double value) { return static_cast<double>(static_cast<float>(value)); };
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 2; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += xs[3 * i + k] * ws[3 * j + k];
      CHECK(ys[2 * i + j] == nearest(sum));
      CHECK(dys[2 * i + j] == nearest(1 + 2 * ys[2 * i + j]));
    }
  for (size_t j = 0; j < 2; ++j)
    for (size_t k = 0; k < 3; ++k) CHECK(dws[3 * j + k] == nearest(dys[j] * xs[k] + dys[2 + j] * xs[3 + k]));
  CHECK(roundings.values.size() == record.values().size());
  CHECK(std::ranges::any_of(roundings.gradients, &Rounding::known));
}

TEST_CASE("rounding: cells near the middle of two floats, and cells of the slack's size, are told") {
  const double half = 0x1p-24;  // half a step of floats at 1
  const Tensor x =
      Tensor::from({1, 1 + half * (1 - 1e-9), 1 + half * 1.5, 1e-17, 0, 3}, {6}, DType::f64).require_grad();
  const Tensor one = Tensor::from({1}, {1, 1}, DType::f64).require_grad();
  Tape tape;
  tape.keep_all();
  RoundingScope rounding(tape);
  const Tensor y = linear(x.reshape({6, 1}), one, Tensor());
  tape.backward(sum(y));
  const PassRecord record(tape, {{"y", y}});
  const Roundings roundings = rounding.finish(record);
  for (size_t i = 0; i < record.values().size(); ++i) {
    if (record.values()[i].name != "y") continue;
    const Rounding& own = roundings.values[i];
    REQUIRE(own.close.size() == 1);
    CHECK(own.close[0].cell == 1);
    CHECK(!own.close[0].odd);
    REQUIRE(own.small.size() == 1);
    CHECK(own.small[0].cell == 3);
    CHECK(own.small[0].value == 1e-17f);
  }
}
