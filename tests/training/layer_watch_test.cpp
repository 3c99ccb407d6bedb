// What a watched step tells of its layers, and that watching it changes nothing.

#include "apps/training/layer_watch.h"

#include <cmath>
#include <set>

#include "apps/training/watch_file.h"
#include "engine/autograd/pass_record.h"
#include "engine/io/file.h"
#include "models/parts/attention.h"
#include "tests/cuda.h"
#include "tests/training/few_steps.h"
#include "tests/training/small_run.h"

using namespace tessera;

namespace {

const char* const decaying_vit = R"({"arch": "vit", "image_size": 8, "num_classes": 3, "dim": 16, "depth": 2,
  "tokenizer": {"kind": "patch", "patch_size": 4},
  "attention": {"heads": 2, "scale": "learned", "decay": {"kind": "content"}}})";

double rms(const std::vector<double>& values) {
  double squares = 0;
  for (const double x : values) squares += x * x;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

const LayerFigures& find(const std::vector<LayerFigures>& all, const std::string& layer, int64_t head = -1) {
  for (const LayerFigures& f : all)
    if (f.layer == layer && f.head == head) return f;
  FAIL("no row for ", layer);
  return all.front();
}

Model double_model(const char* config) {
  return build(parse_json(config, "config"), {.seed = 3, .dtype = DType::f64});
}

StepBatch double_batch(const Model& model) {
  StepBatch batch = batch_of(model, 1);
  batch.images = batch.images.to(DType::f64);
  return batch;
}

// The same pass, recorded op by op: an independent account of what the step must tell.
PassRecord record_of(const Model& model, const StepBatch& batch) {
  const PlainAttention plain;
  Tape tape;
  tape.keep_all();
  Pass pass{.training = true, .random = Random(5)};
  const Tensor loss =
      model.training_loss({{"input", batch.images}, {"target", batch.targets}}, {.smoothing = 0.1}, pass)
          .loss;
  tape.backward(loss);
  return PassRecord(tape, model.parameters.state());
}

// Steps of `how`, every `every`th of them watched, on the batches of train().
Trained train_watched(const How& how, int every) {
  How watched = how;
  watched.watched_every = every;
  return train(watched);
}

}  // namespace

TEST_CASE("watch: a step's figures are those of a recorded pass, in parts or at once") {
  for (const int64_t micro_batch : {0, 2, 4}) {
    CAPTURE(micro_batch);
    const Model recorded = double_model(decaying_vit);
    Model model = double_model(decaying_vit);
    const StepBatch batch = double_batch(model);
    const PassRecord record = record_of(recorded, batch);
    AdamW optimizer(make_groups(trainable(model.parameters), 0.05, {}));
    TrainStep step(model, optimizer, {.micro_batch = micro_batch, .smoothing = 0.1});
    Pass pass{.training = true, .random = Random(5)};
    step.start(batch, 0.01, pass, true);
    const std::vector<LayerFigures> layers = step.finish().layers;

    for (const char* layer : {"patch_embed", "blocks.0", "blocks.1", "norm", "head"}) {
      CAPTURE(layer);
      const PassRecord::Value& out = record.value(std::string(layer) + ".out");
      CHECK(find(layers, layer).activation_rms == doctest::Approx(rms(out.value.values())).epsilon(1e-9));
      CHECK(find(layers, layer).gradient_rms == doctest::Approx(rms(out.gradient.values())).epsilon(1e-7));
      std::vector<double> weights, gradients, changes;
      for (const Parameter& p : recorded.parameters) {
        if (!p.name.starts_with(std::string(layer) + ".")) continue;
        const std::vector<double> before = p.value.values(), after = model.parameters.find(p.name)->values(),
                                  gradient = p.value.grad().values();
        weights.insert(weights.end(), before.begin(), before.end());
        gradients.insert(gradients.end(), gradient.begin(), gradient.end());
        for (size_t i = 0; i < before.size(); ++i) changes.push_back(after[i] - before[i]);
      }
      CHECK(find(layers, layer).weight_rms == doctest::Approx(rms(weights)).epsilon(1e-9));
      CHECK(find(layers, layer).weight_gradient_rms == doctest::Approx(rms(gradients)).epsilon(1e-7));
      CHECK(find(layers, layer).update_ratio == doctest::Approx(rms(changes) / rms(weights)).epsilon(1e-6));
    }
    for (const char* attention : {"blocks.0.attn", "blocks.1.attn"}) {
      const std::vector<double> scales =
          recorded.parameters.find(std::string(attention) + ".scale")->values();
      const std::vector<double> gates =
          record.value(std::string(attention) + ".gate.log_sigmoid").value.values();
      for (size_t head = 0; head < 2; ++head) {
        const LayerFigures& its = find(layers, attention, static_cast<int64_t>(head));
        double sum = 0;
        for (size_t i = head; i < gates.size(); i += 2) sum += std::exp(gates[i]);
        CHECK(its.temperature == doctest::Approx(1 / scales[head]));
        CHECK(its.gate == doctest::Approx(2 * sum / static_cast<double>(gates.size())).epsilon(1e-9));
        CHECK(std::isnan(its.activation_rms));
      }
    }
    CHECK(std::isnan(find(layers, "cls_token").activation_rms));
    CHECK(find(layers, "cls_token").weight_rms > 0);
  }
}

TEST_CASE("watch: a watched step computes the same bits, and tells nothing where it is left out") {
  for (const char* config : {vit, dit, resnet, segmenter, lvvit, decaying_vit})
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      CAPTURE(config);
      How how{.bad = {2}, .config = config};
      how.options.precision = precision;
      const Trained plain = train(how), watched = train_watched(how, 2);
      expect_same(plain, watched);
      for (int k = 0; k < count; ++k) {
        CAPTURE(k);
        const std::vector<LayerFigures>& layers = watched.results[static_cast<size_t>(k)].layers;
        CHECK(plain.results[static_cast<size_t>(k)].layers.empty());
        CHECK(layers.empty() == (k % 2 != 0 || k == 2));
        for (const LayerFigures& f : layers) {
          CAPTURE(f.layer);
          CHECK((f.head >= 0 || f.weight_rms > 0 || f.activation_rms >= 0));
          if (f.head < 0 && f.weight_rms > 0) CHECK(f.update_ratio > 0);
        }
      }
    }
}

TEST_CASE("watch: on a GPU, between replayed steps, the same bits") {
  if (!cuda_here()) return;
  for (const Way way : {Way::at_once, Way::late}) {
    How how{.device = Device::cuda, .way = way};
    how.options.graph = true;
    const Trained plain = train(how), watched = train_watched(how, 4);
    expect_same(plain, watched);
    CHECK(watched.results[4].layers.size() > 5);
    How host = how;
    host.device = Device::cpu;
    const Trained here = train_watched(host, 4);
    for (size_t i = 0; i < here.results[0].layers.size(); ++i) {
      const LayerFigures &a = watched.results[0].layers[i], &b = here.results[0].layers[i];
      CHECK(a.layer == b.layer);
      if (a.head < 0) CHECK(a.weight_rms == doctest::Approx(b.weight_rms).epsilon(1e-6));
      if (!std::isnan(b.activation_rms))
        CHECK(a.activation_rms == doctest::Approx(b.activation_rms).epsilon(1e-4));
    }
  }
}

TEST_CASE("watch: the layer of a path") {
  CHECK(layer_of("blocks.3.attn.qkv") == "blocks.3");
  CHECK(layer_of("blocks_token.1.mlp") == "blocks_token.1");
  CHECK(layer_of("layers.0.blocks.11.attn") == "layers.0.blocks.11");
  CHECK(layer_of("backbone.blocks.3.norm1") == "backbone.blocks.3");
  CHECK(layer_of("layers.1.downsample.norm") == "layers.1.downsample");
  CHECK(layer_of("layers.0.3.conv1") == "layers.0.3");
  CHECK(layer_of("features.2.conv") == "features.2");
  CHECK(layer_of("patch_embed.proj") == "patch_embed");
  CHECK(layer_of("head") == "head");
  CHECK(layer_of("cls_token") == "cls_token");
}

TEST_CASE("watch.csv: grows by whole lines, is cut to what the state knows, and says where rows are lost") {
  const TemporaryFolder folder;
  const std::vector<LayerFigures> layers{{.layer = "blocks.0", .activation_rms = 0.5, .weight_rms = 1e-9},
                                         {.layer = "blocks.0.attn", .head = 1, .temperature = 4}};
  LogMark first;
  {
    WatchFile file(folder.path(), {});
    CHECK(file.save().bytes == 0);
    file.add(1, layers);
    first = file.save();
    file.add(50, layers);
    CHECK(file.save().bytes > first.bytes);
  }
  const auto text = [&] { return read_text(folder / "watch.csv"); };
  const std::string one = WatchFile::head() + "\n1,blocks.0,,0.5,,1e-09,,,,\n1,blocks.0.attn,1,,,,,,4,\n";
  CHECK(text() == one + "50,blocks.0,,0.5,,1e-09,,,,\n50,blocks.0.attn,1,,,,,,4,\n");
  { const WatchFile file(folder.path(), first); }
  CHECK(text() == one);
  write_file_atomically(folder / "watch.csv", one + "50,blo");  // a killed run's
  {
    const Quiet quiet;
    const WatchFile file(folder.path(), {first.bytes + 500, first.sum});
    CHECK(file.save().sum == first.sum);
  }
  CHECK(text() == one);
}

TEST_CASE("watch.csv: a run that is broken off anywhere has the rows of an unbroken one") {
  Json vit = small_vit;
  vit["attention"]["scale"] = "learned";
  const SmallRun run = small_run({{"model", vit}, {"watch", {{"every_steps", 2}}}});
  const TemporaryFolder folder;
  train_in(folder / "whole", run);
  const std::string whole = read_text(folder / "whole" / "watch.csv");
  std::set<std::string> steps;
  for (size_t at = whole.find('\n') + 1; at < whole.size(); at = whole.find('\n', at) + 1)
    steps.insert(whole.substr(at, whole.find(',', at) - at));
  CHECK(steps == std::set<std::string>{"1", "2", "4", "6"});
  for (int64_t stop = 1; stop < 6; ++stop) {
    CAPTURE(stop);
    const std::filesystem::path path = folder / ("broken-" + std::to_string(stop));
    train_in(path, run, {.steps = stop});
    // What a killed run has written since its state was saved is cut off.
    write_file_atomically(path / "watch.csv",
                          read_text(path / "watch.csv") + "99,blocks.0,,1,1,1,1,1,,\n99,");
    train_in(path, run);
    CHECK(read_text(path / "watch.csv") == whole);
  }
}
