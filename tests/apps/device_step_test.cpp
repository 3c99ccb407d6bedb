#include "apps/device_step.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "engine/check/gradient_check.h"
#include "engine/optim/adamw.h"
#include "models/model.h"
#include "tests/cuda.h"

using namespace tessera;

namespace {

const char* const config = R"({"arch": "vit", "image_size": 8, "num_classes": 3, "dim": 16, "depth": 2,
  "drop_path": 0.3, "tokenizer": {"kind": "shifted", "patch_size": 4},
  "attention": {"heads": 2, "scale": "learned", "mask_diagonal": true}})";

StepBatch batch_of(uint64_t seed) {
  Random random(seed);
  const Tensor images = Tensor::empty({6, 3, 8, 8}), labels = Tensor::empty({6}, DType::i64);
  for (int64_t i = 0; i < images.elements(); ++i)
    images.data<float>()[i] = static_cast<float>(random.normal());
  for (int64_t i = 0; i < 6; ++i) labels.data<int64_t>()[i] = random.below(3);
  return {images, labels};
}

struct Trained {
  std::vector<StepResult> results;
  NamedTensors weights, moments;
};

// Six steps at a falling rate; the one at `mixed_from` and those after it are mixed with others, that at
// `bad` has an infinite pixel.
Trained train(Device device, const StepOptions& options, bool plain_step, int mixed_from = 6, int bad = 6) {
  Model model = build(parse_json(config, "config"), {.seed = 3, .device = device});
  AdamW optimizer(make_groups(trainable(model.parameters), 0.05, {}));
  TrainStep step(model, optimizer, options);
  DeviceStep other(model, optimizer, options);
  Trained trained;
  Pass pass{.training = true, .random = Random(5)};
  for (int k = 0; k < 6; ++k) {
    StepBatch batch = batch_of(static_cast<uint64_t>(k));
    if (k >= mixed_from) {
      batch.other_labels = batch_of(static_cast<uint64_t>(k) + 90).targets;
      batch.lam = 0.1 * (k + 1);
    }
    if (k == bad) batch.images.data<float>()[7] = std::numeric_limits<float>::infinity();
    const double lr = 0.01 / (k + 1);
    trained.results.push_back(plain_step ? step(batch, lr, pass) : other(batch, lr, pass));
  }
  for (const auto& [name, value] : model.parameters.state())
    trained.weights.emplace_back(name, value.to(Device::cpu));
  for (const auto& [name, value] : optimizer.state())
    trained.moments.emplace_back(name, value.to(Device::cpu));
  return trained;
}

void expect_near(const Trained& a, const Trained& b, double tolerance) {
  for (size_t k = 0; k < a.results.size(); ++k) {
    CAPTURE(k);
    CHECK(a.results[k].loss == doctest::Approx(b.results[k].loss).epsilon(tolerance));
    CHECK(a.results[k].gradient_norm == doctest::Approx(b.results[k].gradient_norm).epsilon(tolerance));
  }
  for (size_t i = 0; i < a.weights.size(); ++i) {
    CAPTURE(a.weights[i].first);
    CHECK(relative_error(a.weights[i].second, b.weights[i].second) <= tolerance);
  }
}

void expect_same(const Trained& a, const Trained& b) {
  for (size_t k = 0; k < a.results.size(); ++k) {
    CHECK(a.results[k].trouble == b.results[k].trouble);
    if (a.results[k].trouble) continue;
    CHECK(a.results[k].loss == b.results[k].loss);
    CHECK(a.results[k].correct == b.results[k].correct);
    CHECK(a.results[k].gradient_norm == b.results[k].gradient_norm);
  }
  for (size_t i = 0; i < a.weights.size(); ++i)
    CHECK(a.weights[i].second.values() == b.weights[i].second.values());
  for (size_t i = 0; i < a.moments.size(); ++i)
    CHECK(a.moments[i].second.values() == b.moments[i].second.values());
}

}  // namespace

TEST_CASE("device step: on the CPU it is the training step") {
  StepOptions options{.micro_batch = 0, .clip = 1, .smoothing = 0.1, .graph = false};
  expect_near(train(Device::cpu, options, false), train(Device::cpu, options, true), 1e-5);
  expect_near(train(Device::cpu, options, false, 2), train(Device::cpu, options, true, 2), 1e-5);
}

TEST_CASE("device step: bf16 follows f32") {
  const StepOptions wide{.micro_batch = 0, .smoothing = 0.1, .graph = false};
  StepOptions narrow = wide;
  narrow.precision = Precision::bf16;
  const Trained a = train(Device::cpu, narrow, true), b = train(Device::cpu, wide, true);
  for (size_t k = 0; k < a.results.size(); ++k)
    CHECK(a.results[k].loss == doctest::Approx(b.results[k].loss).epsilon(0.03));
  CHECK(a.weights.front().second.dtype() == DType::f32);
}

TEST_CASE("device step: what is not finite changes nothing") {
  Model model = build(parse_json(config, "config"), {.seed = 3});
  AdamW optimizer(make_groups(trainable(model.parameters), 0.05, {}));
  DeviceStep step(model, optimizer, {.graph = false});
  Pass pass{.training = true};
  step(batch_of(1), 0.01, pass);
  const std::vector<double> before = model.parameters.begin()->value.values();
  const StepBatch bad = batch_of(2);
  bad.images.data<float>()[7] = std::numeric_limits<float>::infinity();
  CHECK(step(bad, 0.01, pass).trouble.has_value());
  CHECK(model.parameters.begin()->value.values() == before);
  CHECK(optimizer.state()[2].second.integers().front() == 1);
}

TEST_CASE("cuda: a training step, launched and replayed") {
  if (!cuda_here()) return;
  const StepOptions options{.micro_batch = 0, .clip = 1, .smoothing = 0.1, .graph = false};
  StepOptions replayed = options;
  replayed.graph = true;
  for (const int mixed_from : {6, 2}) {
    const Trained launched = train(Device::cuda, options, true, mixed_from);
    expect_near(launched, train(Device::cpu, options, true, mixed_from), 1e-3);
    expect_same(launched, train(Device::cuda, replayed, true, mixed_from));
  }
}

TEST_CASE("cuda: a replayed step that is left out, and those after it") {
  if (!cuda_here()) return;
  const StepOptions options{.micro_batch = 0, .smoothing = 0.1, .graph = false};
  StepOptions replayed = options;
  replayed.graph = true;
  const Trained launched = train(Device::cuda, options, true, 6, 3);
  CHECK(launched.results[3].trouble.value().starts_with("the loss is nan; the images hold bad numbers"));
  expect_same(launched, train(Device::cuda, replayed, true, 6, 3));
}
