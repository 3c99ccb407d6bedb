#include "tests/cuda.h"
#include "tests/training/few_steps.h"

using namespace tessera;

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
  CHECK(&wide.evaluation_model() == &model);
  Pass pass{.training = true};
  for (uint64_t k = 0; k < 2; ++k) {
    narrow(batch_of(model, k), 0.01, pass);
    const Parameters& computing = narrow.evaluation_model().parameters;
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
  TrainStep step(model, optimizer, {.graph = false});
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
