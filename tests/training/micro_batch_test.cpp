// A batch that goes through in micro-batches: the gradient of the whole batch, whatever the size.

#include "engine/autograd/tape.h"
#include "engine/optim/sgd.h"
#include "tests/cuda.h"
#include "tests/error_of.h"
#include "tests/training/few_steps.h"

using namespace tessera;

namespace {

// `images` images of 8 x 8 pixels with labels, in the model's type.
StepBatch pictures(int64_t images, DType dtype = DType::f32) {
  Random random(1);
  const Tensor pixels = Tensor::empty({images, 3, 8, 8}), labels = Tensor::empty({images}, DType::i64);
  for (int64_t i = 0; i < pixels.elements(); ++i)
    pixels.data<float>()[i] = static_cast<float>(random.normal());
  for (int64_t i = 0; i < images; ++i) labels.data<int64_t>()[i] = random.below(3);
  return {pixels.to(dtype), labels};
}

const char* const plain_vit = R"({"arch": "vit", "image_size": 8, "num_classes": 3, "dim": 16, "depth": 2,
  "tokenizer": {"kind": "patch", "patch_size": 4}, "attention": {"heads": 2}})";

struct StepGradients {
  StepResult result;
  NamedTensors all;
};

// The gradients that a step on 23 images leaves.
StepGradients gradients_of(int64_t micro_batch, DType dtype, Precision precision) {
  Model model = build(parse_json(plain_vit, "config"), {.seed = 3, .dtype = dtype});
  Sgd optimizer(make_groups(trainable(model.parameters), 0, {}), {.momentum = 0});
  TrainStep step(model, optimizer, {.micro_batch = micro_batch, .smoothing = 0.1, .precision = precision});
  Pass pass{.training = true};
  StepGradients gradients{step(pictures(23, dtype), 0.01, pass), {}};
  const bool lent = precision == Precision::bf16 && (micro_batch == 0 || micro_batch >= 23);
  for (const auto& [name, value] : trainable(model.parameters)) {
    REQUIRE(value.grad().defined());
    CHECK(value.grad().dtype() == (lent ? DType::bf16 : dtype));
    gradients.all.emplace_back(name, value.grad().clone());
  }
  return gradients;
}

// What a step on `batch` in parts of 3 must leave, computed without TrainStep: weights and statistics.
NamedTensors resnet_by_hand(const StepBatch& batch, double lr, double& loss) {
  const Model model = build(parse_json(resnet, "config"), {.seed = 3, .dtype = DType::f64});
  const int64_t images = batch.images.dim(0);
  Pass pass{.training = true};
  for (int64_t first = 0; first < images; first += 3) {
    const int64_t count = std::min<int64_t>(3, images - first);
    Tape tape;
    const Tensor part = model
                            .training_loss({{"input", batch.images.rows(first, count)},
                                            {"target", batch.targets.rows(first, count)}},
                                           {.rows = images}, pass)
                            .loss;
    loss += part.item();
    tape.backward(part);
  }
  for (const auto& [name, value] : trainable(model.parameters))
    for (int64_t i = 0; i < value.elements(); ++i)
      value.data<double>()[i] -= lr * value.grad().data<double>()[i];
  return model.parameters.state();
}

std::string refusal(const char* config, const StepOptions& options, int64_t batch) {
  const Model model = build(parse_json(config, "config"));
  return error_of([&] { check_step_options(model, options, batch); });
}

}  // namespace

TEST_CASE("micro-batches of any size give the whole batch's gradient, in f64, f32 and bf16") {
  const struct {
    DType dtype;
    Precision precision;
    double tolerance;
  } kinds[] = {{DType::f64, Precision::f32, 1e-12},
               {DType::f32, Precision::f32, 1e-5},
               {DType::f32, Precision::bf16, 3e-2}};
  for (const auto& [dtype, precision, tolerance] : kinds) {
    const StepGradients whole = gradients_of(0, dtype, precision);
    for (const int64_t micro_batch : {16, 7, 1}) {
      CAPTURE(micro_batch);
      CAPTURE(name(precision));
      const StepGradients parts = gradients_of(micro_batch, dtype, precision);
      CHECK(parts.result.loss == doctest::Approx(whole.result.loss).epsilon(tolerance));
      CHECK(parts.result.gradient_norm == doctest::Approx(whole.result.gradient_norm).epsilon(tolerance));
      if (precision == Precision::f32) CHECK(parts.result.correct == whole.result.correct);
      for (size_t i = 0; i < whole.all.size(); ++i) {
        CAPTURE(whole.all[i].first);
        CHECK(relative_error(parts.all[i].second, whole.all[i].second) <= tolerance);
      }
    }
  }
}

TEST_CASE("batch norms of micro-batches take each part's statistics, and move the running ones in turn") {
  const StepBatch batch = pictures(8, DType::f64);
  double loss = 0;
  const NamedTensors by_hand = resnet_by_hand(batch, 0.01, loss);
  Model model = build(parse_json(resnet, "config"), {.seed = 3, .dtype = DType::f64});
  Sgd optimizer(make_groups(trainable(model.parameters), 0, {}), {.momentum = 0});
  TrainStep step(model, optimizer, {.micro_batch = 3, .batch_norm = BatchNormStatistics::micro_batch});
  Pass pass{.training = true};
  CHECK(step(batch, 0.01, pass).loss == doctest::Approx(loss).epsilon(1e-12));
  const NamedTensors stepped = model.parameters.state();
  REQUIRE(stepped.size() == by_hand.size());
  for (size_t i = 0; i < by_hand.size(); ++i) {
    CAPTURE(by_hand[i].first);
    CHECK(relative_error(stepped[i].second, by_hand[i].second) <= 1e-12);
  }

  Model of_batch = build(parse_json(resnet, "config"), {.seed = 3, .dtype = DType::f64});
  Sgd its_optimizer(make_groups(trainable(of_batch.parameters), 0, {}), {.momentum = 0});
  TrainStep whole(of_batch, its_optimizer, {});
  CHECK(whole.micro_batch() == 0);
  whole(batch, 0.01, pass);
  const Tensor &by_batch = *of_batch.parameters.find("bn1.running_var"),
               &by_part = *model.parameters.find("bn1.running_var");
  CHECK(relative_error(by_batch, by_part) > 1e-3);
}

TEST_CASE("a step left out takes the running statistics of all its micro-batches back") {
  How how{.bad = {1}, .config = resnet};
  how.options.micro_batch = 4;
  how.options.batch_norm = BatchNormStatistics::micro_batch;
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    how.options.precision = precision;
    how.way = Way::at_once;
    const Trained at_once = train(how);
    CHECK(at_once.results[1].trouble.has_value());
    how.way = Way::late;
    expect_same(train(how), at_once);
    for (const auto& [name, value] : at_once.numbers)
      for (const double x : value.to(is_float(value.dtype()) ? DType::f64 : value.dtype()).values())
        REQUIRE(std::isfinite(x));
  }
}

TEST_CASE("what steps cannot do is refused with the reason and the way out") {
  const StepOptions parts{.micro_batch = 16};
  CHECK(
      refusal(resnet, parts, 128) ==
      "train: batch_norm is \"batch\": the model's batch norms take the statistics of all 128 images, which "
      "cannot go through in parts of 16 (micro_batch); give micro_batch=0 to send the whole batch through at "
      "once, or batch_norm=micro_batch to take the statistics of each part");
  CHECK(refusal(resnet, parts, 16).empty());
  CHECK(refusal(resnet, {.micro_batch = 0}, 128).empty());
  CHECK(refusal(resnet, {}, 128).empty());
  CHECK(refusal(plain_vit, parts, 128).empty());
  StepOptions each_part = parts;
  each_part.batch_norm = BatchNormStatistics::micro_batch;
  CHECK(refusal(resnet, each_part, 128).empty());
  CHECK(refusal(plain_vit, each_part, 128) ==
        "train: batch_norm is \"micro_batch\", but the model has no batch norm; leave the key out");
  CHECK(refusal(plain_vit, {.precision = Precision::tf32}, 8) ==
        "train: precision tf32 is of a GPU's products; on the CPU take f32 or bf16");
  CHECK(refusal(plain_vit, {.micro_batch = -1}, 8) ==
        "train: micro_batch is -1, wanted 0 (the whole batch) or more");
}

TEST_CASE("cuda: micro-batches have the same bits launched and replayed, and the CPU's numbers") {
  if (!cuda_here()) return;
  for (const char* config : {vit, dit, dit_sigma, resnet, segmenter, lvvit})
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      CAPTURE(std::string(config));
      How how{.config = config};
      how.options.micro_batch = 4;  // of 6 images
      how.options.clip = 1;
      how.options.precision = precision;
      if (has_batch_norm(build(parse_json(config, "config"))))
        how.options.batch_norm = BatchNormStatistics::micro_batch;
      const Trained on_cpu = train(how);
      how.device = Device::cuda;
      const Trained launched = train(how);
      const bool wide = precision == Precision::f32;
      expect_near(launched, on_cpu, wide ? 1e-3 : 0.05, wide && (config == vit || config == dit));
      how.options.graph = true;
      for (const Way way : {Way::at_once, Way::late}) {
        how.way = way;
        const Trained replayed = train(how);
        expect_same(launched, replayed);
        CHECK(notes_of(replayed) == "");
      }
    }
}
