#include "apps/training/device_step.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "engine/check/gradient_check.h"
#include "engine/optim/adamw.h"
#include "models/model.h"
#include "tests/cuda.h"

using namespace tessera;

namespace {

const char* const vit = R"({"arch": "vit", "image_size": 8, "num_classes": 3, "dim": 16, "depth": 2,
  "drop_path": 0.3, "tokenizer": {"kind": "shifted", "patch_size": 4},
  "attention": {"heads": 2, "scale": "learned", "mask_diagonal": true}})";
const char* const dit = R"({"arch": "dit", "image_size": 8, "num_classes": 3, "dim": 16, "depth": 1,
  "tokenizer": {"kind": "patch", "patch_size": 4}, "time_dim": 8, "steps": 50, "label_dropout": 0.4,
  "attention": {"heads": 2, "decay": {"kind": "content"}}})";
const char* const dit_sigma = R"({"arch": "dit", "image_size": 8, "num_classes": 3, "dim": 16, "depth": 1,
  "tokenizer": {"kind": "patch", "patch_size": 4}, "time_dim": 8, "steps": 21, "label_dropout": 0.4,
  "learn_sigma": true, "attention": {"heads": 2}})";
const char* const resnet = R"({"arch": "resnet", "image_size": 8, "num_classes": 3, "depth": 8, "width": 4})";
const char* const segmenter = R"({"arch": "segment", "image_size": 16, "num_classes": 3,
  "backbone": {"arch": "lvvit", "image_size": 16, "num_classes": 0, "dim": 8, "depth": 4,
    "tokenizer": {"kind": "conv_stem", "patch_size": 8, "channels": 4}, "attention": {"heads": 2}},
  "decoder": {"kind": "upernet", "out_blocks": [3, 0, 1, 2], "top_channels": 6, "channels": 6, "dropout": 0.2},
  "aux": {"level": 1, "channels": 4}})";
const char* const lvvit = R"({"arch": "lvvit", "image_size": 16, "num_classes": 3, "dim": 8, "depth": 1,
  "tokenizer": {"kind": "conv_stem", "patch_size": 8, "channels": 4}, "attention": {"heads": 2},
  "dense": true, "mix_token": true})";

constexpr int count = 6;  // steps

enum class Way { at_once, late, half };  // a TrainStep; one result late; a DeviceStep by itself

struct How {
  Device device = Device::cpu;
  StepOptions options{.micro_batch = 0, .smoothing = 0.1, .graph = false};
  Way way = Way::at_once;
  int mixed_from = count;  // the batches from here on are mixed with others
  std::set<int> bad = {};  // the batches with an infinite pixel
  const char* config = vit;
  bool reads_back = false;  // whether the forward pass reads a number on the host, which no graph can do
  bool one_place = false;   // all batches stand in the same memory of the device, one after another
};

// Images, and labels, or a segmenter's masks with pixels of no class.
StepBatch batch_of(const Model& model, uint64_t seed) {
  Random random(seed);
  const int64_t side = model.image_size();
  const bool by_pixel = model.config.at("arch") == "segment";
  const Tensor images = Tensor::empty({6, 3, side, side}),
               labels = Tensor::empty(by_pixel ? Shape{6, side, side} : Shape{6}, DType::i64);
  for (int64_t i = 0; i < images.elements(); ++i)
    images.data<float>()[i] = static_cast<float>(random.normal());
  for (int64_t i = 0; i < labels.elements(); ++i)
    labels.data<int64_t>()[i] =
        by_pixel && random.below(static_cast<int64_t>(seed) + 3) == 0 ? 255 : random.below(3);
  return {images, labels};
}

struct Trained {
  std::vector<StepResult> results;
  NamedTensors numbers;  // weights, moments, averages
};

// Some steps at a falling rate.
Trained train(const How& how) {
  Model model = build(parse_json(how.config, "config"), {.seed = 3, .device = how.device});
  if (how.reads_back)
    model.training_loss = [inner = model.training_loss](const TensorMap& inputs, const LossOptions& options,
                                                        Pass& pass) {
      TrainingLoss result = inner(inputs, options, pass);
      result.loss.item();
      return result;
    };
  AdamW optimizer(make_groups(trainable(model.parameters), 0.05, {}));
  Ema average(model.parameters.state(), 0.9);
  StepOptions options = how.options;
  options.average = &average;
  if (how.config == dit || how.config == dit_sigma) options.smoothing = 0;
  TrainStep step(model, optimizer, options);
  DeviceStep half(model, optimizer, options);
  Trained trained;
  Pass pass{.training = true, .random = Random(5)};
  StepBatch place;
  const int late = how.way == Way::late ? step.most_under_way() - 1 : 0;
  for (int k = 0; k < count; ++k) {
    StepBatch batch = batch_of(model, static_cast<uint64_t>(k));
    if (k >= how.mixed_from) {
      batch.other_labels = batch_of(model, static_cast<uint64_t>(k) + 90).targets;
      batch.lam = 0.1 * (k + 1);
    }
    if (how.bad.contains(k)) batch.images.data<float>()[7] = std::numeric_limits<float>::infinity();
    if (how.one_place && k > 0) {
      place.images.copy_from(batch.images);
      place.targets.copy_from(batch.targets);
    } else if (how.one_place) {
      place = batch.to(how.device);
    }
    if (how.one_place) batch = place;
    const double lr = 0.01 / (k + 1);
    how.way == Way::half ? half.start(batch, lr, pass) : step.start(batch, lr, pass);
    if (k >= late) trained.results.push_back(how.way == Way::half ? half.finish() : step.finish());
  }
  while (trained.results.size() < count) trained.results.push_back(step.finish());
  for (const NamedTensors& state : {model.parameters.state(), optimizer.state(), average.state()})
    for (const auto& [name, value] : state) trained.numbers.emplace_back(name, value.to(Device::cpu));
  return trained;
}

// `weights`: of a network with batch norms they are not: the bias before one has no gradient but rounding's,
// which Adam makes large.
void expect_near(const Trained& a, const Trained& b, double tolerance, bool weights = true) {
  for (size_t k = 0; k < a.results.size(); ++k) {
    CAPTURE(k);
    CHECK(a.results[k].loss == doctest::Approx(b.results[k].loss).epsilon(tolerance));
    CHECK(a.results[k].gradient_norm == doctest::Approx(b.results[k].gradient_norm).epsilon(tolerance));
  }
  for (size_t i = 0; weights && i < a.numbers.size(); ++i) {
    const std::string& name = a.numbers[i].first;
    const Tensor& value = a.numbers[i].second;
    if (!is_float(value.dtype()) || name.starts_with("v.") || name.starts_with("m.")) continue;
    CAPTURE(name);
    CHECK(relative_error(value, b.numbers[i].second) <= tolerance);
  }
}

void expect_same(const Trained& a, const Trained& b) {
  for (size_t k = 0; k < a.results.size(); ++k) {
    CAPTURE(k);
    CHECK(a.results[k].trouble == b.results[k].trouble);
    if (a.results[k].trouble) continue;
    CHECK(a.results[k].loss == b.results[k].loss);
    CHECK(a.results[k].correct == b.results[k].correct);
    CHECK(a.results[k].gradient_norm == b.results[k].gradient_norm);
  }
  for (size_t i = 0; i < a.numbers.size(); ++i) {
    CAPTURE(a.numbers[i].first);
    CHECK(a.numbers[i].second.values() == b.numbers[i].second.values());
  }
}

std::string notes_of(const Trained& trained) {
  std::string notes;
  for (const StepResult& result : trained.results) notes += result.note;
  return notes;
}

}  // namespace

TEST_CASE("device step: on the CPU it is the training step") {
  How how{.options = {.micro_batch = 0, .clip = 1, .smoothing = 0.1, .graph = false}};
  for (const char* config : {vit, dit, dit_sigma, segmenter, lvvit})
    for (const int mixed_from : {count, 2}) {
      if (config != vit && config != lvvit && mixed_from < count) continue;
      how.config = config;
      how.mixed_from = mixed_from;
      how.way = Way::at_once;
      const Trained whole = train(how);
      how.way = Way::half;
      expect_near(train(how), whole, 1e-5);
    }
}

TEST_CASE("device step: bf16 follows f32") {
  for (const char* config : {vit, resnet, dit, dit_sigma, segmenter, lvvit}) {
    CAPTURE(std::string(config));
    How how{.config = config};
    const Trained wide = train(how);
    how.options.precision = Precision::bf16;
    const Trained narrow = train(how);
    for (size_t k = 0; k < count; ++k)
      CHECK(narrow.results[k].loss == doctest::Approx(wide.results[k].loss).epsilon(0.03));
    for (size_t i = 0; i < narrow.numbers.size(); ++i) {
      const auto& [name, value] = narrow.numbers[i];
      CAPTURE(name);
      if (is_float(value.dtype())) CHECK(value.dtype() == DType::f32);
      // The means are near 0, where rounding shows against nothing; the variances are all above it.
      if (config == resnet && name.ends_with("running_var"))
        CHECK(relative_error(value, wide.numbers[i].second) < 0.03);
    }
  }
}

TEST_CASE("device step: what computes has the weights and statistics as they are") {
  Model model = build(parse_json(resnet, "config"), {.seed = 3});
  AdamW optimizer(make_groups(trainable(model.parameters), 0.05, {}));
  TrainStep narrow(model, optimizer, {.precision = Precision::bf16}), wide(model, optimizer, {});
  CHECK(&wide.computing() == &model);
  Pass pass{.training = true};
  for (uint64_t k = 0; k < 2; ++k) {
    narrow(batch_of(model, k), 0.01, pass);
    const Parameters& computing = narrow.computing().parameters;
    for (const Parameter& p : model.parameters) {
      CAPTURE(p.name);
      const Tensor& value = *computing.find(p.name);
      CHECK(value.dtype() == (p.statistic ? DType::f32 : DType::bf16));
      CHECK(value.values() == p.value.to(value.dtype()).values());
    }
  }
}

TEST_CASE("device step: what is not finite changes nothing") {
  Model model = build(parse_json(vit, "config"), {.seed = 3});
  AdamW optimizer(make_groups(trainable(model.parameters), 0.05, {}));
  DeviceStep step(model, optimizer, {.graph = false});
  Pass pass{.training = true};
  step.start(batch_of(model, 1), 0.01, pass);
  step.finish();
  const std::vector<double> before = model.parameters.begin()->value.values();
  const StepBatch bad = batch_of(model, 2);
  bad.images.data<float>()[7] = std::numeric_limits<float>::infinity();
  step.start(bad, 0.01, pass);
  CHECK(step.finish().trouble.has_value());
  CHECK(model.parameters.begin()->value.values() == before);
  CHECK(optimizer.state()[2].second.integers().front() == 1);
  CHECK_THROWS_WITH_AS(step.finish(), "step: none is under way", Error);
}

TEST_CASE("device step: results that come late are the same, whatever is left out") {
  How how;
  how.options.precision = Precision::bf16;  // a device step, on the CPU
  for (const char* config : {vit, resnet})
    for (const std::set<int>& bad : {std::set<int>{}, {2}, {0, 3, 4}, {count - 1}}) {
      how.config = config;
      how.bad = bad;
      how.way = Way::at_once;
      const Trained at_once = train(how);
      how.way = Way::late;
      expect_same(train(how), at_once);
      for (int k = 0; k < count; ++k)
        CHECK(at_once.results[static_cast<size_t>(k)].trouble.has_value() == bad.contains(k));
    }
}

TEST_CASE("cuda: a training step, launched and replayed") {
  if (!cuda_here()) return;
  How how{.options = {.micro_batch = 0, .clip = 1, .smoothing = 0.1, .graph = false}};
  for (const char* config : {vit, dit, dit_sigma, segmenter, lvvit})
    for (const int mixed_from : {count, 2}) {
      if (config != vit && config != lvvit && mixed_from < count) continue;
      CAPTURE(std::string(config));
      how = {.device = Device::cpu, .options = how.options, .mixed_from = mixed_from, .config = config};
      const Trained on_cpu = train(how);
      how.device = Device::cuda;
      const Trained launched = train(how);
      expect_near(launched, on_cpu, 1e-3, config != segmenter && config != lvvit);
      How replayed = how;
      replayed.options.graph = true;
      replayed.way = Way::late;
      const Trained again = train(replayed);
      expect_same(launched, again);
      CHECK(notes_of(again) == "");
    }
}

TEST_CASE("cuda: replayed steps that are left out, and those after them") {
  if (!cuda_here()) return;
  for (const char* config : {vit, resnet})
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      How how{.device = Device::cuda, .bad = {3, 4}, .config = config};
      how.options.precision = precision;
      const Trained launched = train(how);
      CHECK(launched.results[3].trouble.value().starts_with("the loss is nan; the images hold bad numbers"));
      how.options.graph = true;
      for (const Way way : {Way::at_once, Way::late}) {
        how.way = way;
        for (const bool one_place : {false, true}) {
          how.one_place = one_place;
          expect_same(launched, train(how));
        }
      }
    }
}

TEST_CASE("cuda: a step that cannot be recorded is launched, with a word") {
  if (!cuda_here()) return;
  How how{.device = Device::cuda, .reads_back = true};
  const Trained launched = train(how);
  how.options.graph = true;
  const Trained tried = train(how);
  expect_same(launched, tried);
  CHECK(notes_of(tried).ends_with("so every operation of a step is launched by itself"));
}

TEST_CASE("cuda: the steps of every architecture are recorded") {
  if (!cuda_here()) return;
  const std::string start = R"({"image_size": 8, "num_classes": 3, "arch": )";
  for (const char* rest :
       {R"("pit", "dim": 8, "depth": [1, 1], "drop_path": 0.1, "pool": {"kind": "shifted"},
           "tokenizer": {"kind": "shifted", "patch_size": 2}, "attention": {"heads": [2, 4]}})",
        // Heads of 48: attention's kernel takes much shared memory for 65 tokens, then less for 17.
        R"("pit", "dim": 48, "depth": [1, 1], "pool": {"kind": "shifted"},
           "tokenizer": {"kind": "patch", "patch_size": 1}, "attention": {"heads": [1, 2]}})",
        R"("swin", "dim": 8, "depth": [2, 1], "window": 2, "pool": {"kind": "merge"},
           "tokenizer": {"kind": "patch", "patch_size": 2},
           "attention": {"heads": [2, 4], "relative_bias": true}})",
        R"("cait", "dim": 8, "depth": 1, "class_depth": 1, "drop_path": 0.1,
           "tokenizer": {"kind": "patch", "patch_size": 2}, "attention": {"heads": 2}})",
        R"("t2t", "dim": 8, "depth": 1, "tokenizer": {"kind": "soft_split", "splits": 2, "token_dim": 4},
           "attention": {"heads": 2, "decay": {"kind": "fixed"}}})",
        R"("lvvit", "dim": 8, "depth": 2, "pos_cnn": true, "sp_layers": 1,
           "tokenizer": {"kind": "conv_stem", "patch_size": 2, "channels": 3},
           "attention": {"heads": 2, "prior": {"sharing": "layer", "hidden": 2}}})",
        R"("rmt", "dim": [4, 8], "depth": [1, 1], "mlp_ratio": [2, 2], "proj_dim": 6,
           "tokenizer": {"kind": "conv_stem", "strides": [1, 1, 1, 1]},
           "attention": {"heads": [2, 2], "decay": {"kind": "content"}, "decomposed": [true, false]}})",
        R"("resnet", "depth": 8, "width": 4})",
        R"("efficientnet", "stem_width": 4, "head_width": 8, "dropout": 0.2, "drop_path": 0.4,
           "stages": [{"width": 4, "depth": 2, "kernel": 3, "stride": 1, "expand": 1}]})"}) {
    CAPTURE(std::string(rest));
    const std::string config = start + rest;
    How how{.device = Device::cuda, .config = config.c_str()};
    const Trained launched = train(how);
    how.options.graph = true;
    const Trained replayed = train(how);
    CHECK(notes_of(replayed) == "");
    expect_same(launched, replayed);
  }
}
