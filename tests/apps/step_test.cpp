#include "apps/step.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/presets.h"
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

Stepped one_step(const StepOptions& options, double lr = 0.01) {
  Model model = small_model();
  OptimizerConfig plain_sgd;
  plain_sgd.kind = "sgd";
  plain_sgd.momentum = plain_sgd.weight_decay = 0;
  const auto optimizer = make_optimizer(plain_sgd, model.parameters);
  TrainStep step(model, *optimizer, options);
  Pass pass{.training = true};
  Stepped stepped;
  stepped.result = step(noise({7, 3, 16, 16}), labels, lr, pass);
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

TEST_CASE("the norm is that before clipping, the gradient that after") {
  const Stepped free = one_step({});
  CHECK(free.result.gradient_norm == doctest::Approx(norm_of(free.gradients)).epsilon(1e-12));
  const Stepped clipped = one_step({.clip = free.result.gradient_norm / 4});
  CHECK(clipped.result.gradient_norm == doctest::Approx(free.result.gradient_norm).epsilon(1e-12));
  CHECK(norm_of(clipped.gradients) == doctest::Approx(free.result.gradient_norm / 4).epsilon(1e-12));
}

TEST_CASE("a loss that is not finite leaves the weights alone") {
  Model model = small_model();
  const auto optimizer = make_optimizer({}, model.parameters);
  TrainStep step(model, *optimizer, {});
  Tensor images = noise({7, 3, 16, 16});
  images.data<double>()[5] = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::vector<double>> before;
  for (const Parameter& p : model.parameters) before.push_back(p.value.values());
  Pass pass{.training = true};
  CHECK(message_of<Error>([&] { step(images, labels, 0.01, pass); }).find("the loss is nan") !=
        std::string::npos);
  size_t i = 0;
  for (const Parameter& p : model.parameters) CHECK(p.value.values() == before[i++]);
}

TEST_CASE("groups that match no parameter are refused") {
  const Model model = small_model();
  OptimizerConfig config;
  config.groups = {{"*.baes", 0.0}};
  CHECK(message_of<Error>([&] { make_optimizer(config, model.parameters); }).find("*.baes") !=
        std::string::npos);
}

TEST_CASE("the right ones are counted") {
  const Tensor logits = Tensor::from({1, 2, 3, 1, 1, 0}, {2, 3});
  CHECK(count_correct(logits, Tensor::from(std::vector<int64_t>{2, 1}, {2})) == 1);
  CHECK(count_correct(logits, Tensor::from(std::vector<int64_t>{2, 0}, {2})) == 2);
}
