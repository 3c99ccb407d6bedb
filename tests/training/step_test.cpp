#include "apps/training/step.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/presets.h"
#include "tests/error_of.h"
#include "tests/io/temporary_folder.h"

using namespace tessera;

namespace {

Model small_model() {
  Json config = preset("sl-vit", 16, 4);
  config.merge_patch({{"dim", 16}, {"depth", 2}, {"drop_path", 0.0}, {"attention", {{"heads", 2}}}});
  return build(config, {.seed = 3, .dtype = DType::f64});
}

Tensor noise(const Shape& shape) {
  Random random(1);
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& value : values) value = random.normal();
  return Tensor::from(values, shape, DType::f64);
}

const Tensor labels = Tensor::from(std::vector<int64_t>{0, 1, 2, 3, 0, 1, 2}, {7});

struct Stepped {
  StepResult result;
  std::vector<double> weights, gradients;
};

Stepped one_step(const StepOptions& options, double lr = 0.01, const Tensor& other_labels = {},
                 double lam = 1) {
  Model model = small_model();
  OptimizerConfig plain_sgd;
  plain_sgd.kind = "sgd";
  plain_sgd.momentum = plain_sgd.weight_decay = 0;
  const auto optimizer = make_optimizer(plain_sgd, model.parameters);
  TrainStep step(model, *optimizer, options);
  Pass pass{.training = true};
  Stepped stepped;
  stepped.result = step({noise({7, 3, 16, 16}), labels, other_labels, lam}, lr, pass);
  for (const Parameter& p : model.parameters) {
    if (!p.trainable) continue;
    for (const double x : p.value.values()) stepped.weights.push_back(x);
    for (const double x : p.value.grad().values()) stepped.gradients.push_back(x);
  }
  return stepped;
}

double norm_of(const std::vector<double>& x) {
  double squares = 0;
  for (const double each : x) squares += each * each;
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("micro-batches add up to the whole batch") {
  const Stepped whole = one_step({.micro_batch = 0, .smoothing = 0.1});
  for (const int64_t micro : {1, 3, 7, 100}) {
    CAPTURE(micro);
    const Stepped parts = one_step({.micro_batch = micro, .smoothing = 0.1});
    CHECK(parts.result.loss == doctest::Approx(whole.result.loss).epsilon(1e-12));
    CHECK(parts.result.correct == whole.result.correct);
    CHECK(parts.result.gradient_norm == doctest::Approx(whole.result.gradient_norm).epsilon(1e-10));
    double most = 0;
    for (size_t i = 0; i < whole.weights.size(); ++i)
      most = std::max(most, std::abs(parts.weights[i] - whole.weights[i]));
    CHECK(most < 1e-12);
  }
}

TEST_CASE("a mixed batch is learned as both labels by their shares, and counted by its own") {
  const Tensor others = Tensor::from(std::vector<int64_t>{3, 3, 3, 0, 0, 0, 1}, {7});
  const double lam = 0.3;
  const Stepped own = one_step({.smoothing = 0.1}, 0.0),
                other = one_step({.smoothing = 0.1}, 0.0, others, 0.0);
  for (const int64_t micro : {0, 3}) {
    CAPTURE(micro);
    const Stepped both = one_step({.micro_batch = micro, .smoothing = 0.1}, 0.0, others, lam);
    CHECK(both.result.loss ==
          doctest::Approx(lam * own.result.loss + (1 - lam) * other.result.loss).epsilon(1e-12));
    CHECK(both.result.correct == own.result.correct);
    double most = 0;
    for (size_t i = 0; i < own.gradients.size(); ++i)
      most = std::max(most,
                      std::abs(both.gradients[i] - lam * own.gradients[i] - (1 - lam) * other.gradients[i]));
    CHECK(most < 1e-12);
    CHECK(norm_of(both.gradients) > 0);
  }
}

TEST_CASE("the norm is that before clipping, the gradient that after") {
  const Stepped free = one_step({});
  CHECK(free.result.gradient_norm == doctest::Approx(norm_of(free.gradients)).epsilon(1e-12));
  const Stepped clipped = one_step({.clip = free.result.gradient_norm / 4});
  CHECK(clipped.result.gradient_norm == doctest::Approx(free.result.gradient_norm).epsilon(1e-12));
  CHECK(norm_of(clipped.gradients) == doctest::Approx(free.result.gradient_norm / 4).epsilon(1e-12));
}

namespace {

// Every number that a step may change.
std::vector<uint64_t> bits_of_all(const Model& model, const Optimizer& optimizer) {
  NamedTensors all = model.parameters.state();
  for (const auto& moment : optimizer.state()) all.push_back(moment);
  std::vector<uint64_t> bits;
  for (const auto& [name, tensor] : all)
    for (const double x : tensor.to(DType::f64).values()) bits.push_back(std::bit_cast<uint64_t>(x));
  return bits;
}

// One step of `model` on `images`, which must be left out and change nothing; why it was.
std::string trouble_of(Model model, const Tensor& images, const StepOptions& options = {}) {
  const auto optimizer = make_optimizer({}, model.parameters);
  TrainStep step(model, *optimizer, options);
  const auto before = bits_of_all(model, *optimizer);
  Pass pass{.training = true};
  const StepResult result = step({images, labels}, 0.01, pass);
  CHECK(bits_of_all(model, *optimizer) == before);
  return result.trouble.value_or("");
}

Tensor& weight(Model& model, const std::string& name) {
  for (const Parameter& p : model.parameters)
    if (p.name == name) return const_cast<Tensor&>(p.value);
  FAIL("no weight ", name);
  throw 0;
}

const double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("a step that is not finite changes nothing and names the first bad tensor and its op") {
  const auto holds = [](const std::string& text, const std::string& what) {
    CAPTURE(text);
    CHECK(text.find(what) != std::string::npos);
  };
  SUBCASE("images") {
    Tensor images = noise({7, 3, 16, 16});
    images.data<double>()[5] = not_a_number;
    const std::string trouble = trouble_of(small_model(), images);
    holds(trouble, "the loss is nan; the images hold bad numbers: 1 of its 5376 numbers are NaN");
    holds(trouble, "the first at [0, 0, 0, 5]");
  }
  SUBCASE("a weight") {
    Model model = small_model();
    weight(model, "head.bias").data<double>()[2] = not_a_number;
    holds(trouble_of(model, noise({7, 3, 16, 16})),
          "the loss is nan; a weight was bad before the step: 'head.bias', [4]: 1 of its 4 numbers are NaN, "
          "the first at [2]");
  }
  SUBCASE("the output of an op") {
    Model model = small_model();
    weight(model, "blocks.1.mlp.fc1.bias").fill(1e300);
    weight(model, "blocks.1.mlp.fc2.weight").fill(1e300);
    const std::string trouble = trouble_of(model, noise({7, 3, 16, 16}), {.micro_batch = 4});
    holds(trouble, "; first, ");
    holds(trouble, " in blocks.1.mlp.fc2 gave [4, 65, 16]: 4160 of its 4160 numbers are infinite");
  }
  SUBCASE("a gradient") {
    // The MLP is 0 forward, as its norm is, and 1e200 * 1e200 backward.
    Model model = small_model();
    weight(model, "blocks.1.norm2.weight").fill(0);
    for (const char* name : {"blocks.1.mlp.fc1.weight", "blocks.1.mlp.fc2.weight"})
      weight(model, name).fill(1e200);
    const std::string trouble = trouble_of(model, noise({7, 3, 16, 16}));
    holds(trouble,
          "the gradient's norm is nan; first, the backward of linear in blocks.1.mlp.fc1 gave the "
          "gradient of the output of layer_norm in blocks.1.norm2, [");
  }
  SUBCASE("a norm whose square overflows") {
    Model model = small_model();
    weight(model, "norm.weight").fill(1e25);
    weight(model, "head.weight").fill(0);
    const std::string trouble = trouble_of(model, noise({7, 3, 16, 16}));
    holds(trouble, "the gradient's norm is ");
    holds(trouble, "the largest gradient is that of head.weight, of norm ");
  }
}

TEST_CASE("groups that match no parameter are refused") {
  const Model model = small_model();
  OptimizerConfig config;
  config.groups = {{"*.baes", 0.0}};
  CHECK(error_of([&] { make_optimizer(config, model.parameters); }).find("*.baes") != std::string::npos);
}

TEST_CASE("running statistics are as before a step that is left out") {
  const Json config{{"arch", "resnet"}, {"depth", 8}, {"width", 4}, {"image_size", 16}, {"num_classes", 4}};
  Model model = build(config, {.seed = 3, .dtype = DType::f64});
  weight(model, "fc.bias").data<double>()[1] = std::numeric_limits<double>::infinity();
  const std::string trouble = trouble_of(model, noise({7, 3, 16, 16}));
  CHECK(trouble.find("'fc.bias'") != std::string::npos);
}
