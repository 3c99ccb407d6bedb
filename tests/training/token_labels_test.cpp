#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/training/step.h"
#include "data/formats/image.h"
#include "engine/check/gradient_check.h"
#include "engine/io/safetensors.h"
#include "engine/optim/adamw.h"
#include "models/parts/token_labels.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

const char* const tiny = R"({"arch": "lvvit", "image_size": 16, "num_classes": 3, "dim": 16, "depth": 2,
  "tokenizer": {"kind": "patch", "patch_size": 8}, "attention": {"heads": 2, "head_dim": 8}, "dense": true})";

// Five pictures, and maps of 2 of 3 classes at 3 x 3 places.
StepBatch labelled_batch() {
  Random random(1);
  StepBatch batch{Tensor::empty({5, 3, 16, 16}), Tensor::from(std::vector<int64_t>{0, 1, 2, 0, 1}, {5})};
  batch.token_maps = Tensor::empty({5, 2, 2, 3, 3});
  batch.token_views = Tensor::empty({5, 6}, DType::f64);
  for (int64_t i = 0; i < batch.images.elements(); ++i)
    batch.images.data<float>()[i] = static_cast<float>(random.normal());
  for (int64_t i = 0; i < 5 * 36; ++i) {
    const int64_t at = i % 36;
    const double score = at < 18 ? 8 * random.uniform() : static_cast<double>((at + (at - 18) / 9) % 3);
    batch.token_maps.data<float>()[i] = static_cast<float>(score);
  }
  for (int64_t i = 0; i < 30; ++i)
    batch.token_views.data<double>()[i] = i % 6 == 0 || i % 6 == 4 ? 0.4 + 0.1 * random.uniform() : 0.1;
  return batch;
}

struct Stepped {
  StepResult result;
  NamedTensors weights;
};

Stepped one_step(const StepOptions& options) {
  Model model = build(parse_json(tiny, "tiny"), {.seed = 3});
  AdamW optimizer(make_groups(trainable(model.parameters), 0.05, {}));
  TrainStep step(model, optimizer, options);
  Pass pass{.training = true};
  step.start(labelled_batch(), 0.01, pass);
  Stepped stepped{step.finish(), {}};
  for (const auto& [name, value] : model.parameters.state())
    stepped.weights.emplace_back(name, value.clone());
  return stepped;
}

void check_near(const Stepped& a, const Stepped& b) {
  CHECK(a.result.loss == doctest::Approx(b.result.loss).epsilon(1e-5));
  CHECK(a.result.correct == b.result.correct);
  for (size_t i = 0; i < a.weights.size(); ++i) {
    CAPTURE(a.weights[i].first);
    CHECK(relative_error(a.weights[i].second, b.weights[i].second) < 1e-4);
  }
}

// A folder of two classes, black and white pictures, and for each a map that says which it is.
void put_data(const TemporaryFolder& folder, const std::string& maps = "maps") {
  std::filesystem::create_directories(folder / maps);
  for (const std::string split : {"train", "val"})
    for (int64_t i = 0; i < 12; ++i) {
      const std::string name = std::string(i % 2 ? "white" : "black") + "/" + std::to_string(i);
      Image image(20, 24);
      std::fill(image.pixels.begin(), image.pixels.end(), static_cast<uint8_t>(i % 2 ? 250 : 5));
      for (const std::string& path : {split + "/" + name, maps + "/" + name})
        std::filesystem::create_directories((folder / path).parent_path());
      write_png(folder / (split + "/" + name + ".png"), image);
      std::vector<double> map(4, 6.0);
      map.resize(8, static_cast<double>(i % 2));
      write_safetensors(folder / (maps + "/" + name + ".safetensors"),
                        {{"token_labels", Tensor::from(map, {2, 1, 2, 2})}});
    }
}

std::string arguments(const TemporaryFolder& folder, const std::string& run) {
  Json model = parse_json(tiny, "tiny");
  model.erase("num_classes");
  model["mix_token"] = true;
  put(folder / "tiny.json", model.dump());
  return "train --model " + (folder / "tiny.json").string() + " --dataset folder --data " +
         folder.path().string() +
         " --image-size 16 --epochs 4 --batch 4 --seed 2 --set schedule.warmup_epochs=0" +
         " --set augment.crop_padding=0 --set 'augment.resized_crop={\"area\":[0.3,1]}' --lr 0.01 --out " +
         (folder / run).string();
}

std::string with_maps(const TemporaryFolder& folder, const std::string& maps = "maps") {
  return " --set data.token_labels=" + (folder / maps).string();
}

}  // namespace

TEST_CASE("a teacher's maps are the targets of images and patches, smoothed; the label is what is counted") {
  const StepBatch batch = labelled_batch();
  const Model model = build(parse_json(tiny, "tiny"), {.seed = 3});
  REQUIRE(model.token_targets);
  const auto [images, patches] = model.token_targets(batch.token_maps, batch.token_views);
  CHECK(patches.shape() == Shape{5, 4, 3});
  Pass pass{.training = true};
  const LossOptions smoothed{.smoothing = 0.1, .rows = 5};
  const auto wanted = model.training_loss(
      {{"input", batch.images}, {"target", images}, {"aux_target", patches}}, smoothed, pass);
  const Stepped whole = one_step({.micro_batch = 0, .smoothing = 0.1});
  CHECK(whole.result.loss == doctest::Approx(wanted.loss.item()).epsilon(1e-6));
  const auto by_label =
      model.training_loss({{"input", batch.images}, {"target", batch.targets}}, smoothed, pass);
  CHECK(std::abs(whole.result.loss - by_label.loss.item()) > 0.01);
  CHECK((whole.result.correct >= 0 && whole.result.correct <= 5));

  check_near(one_step({.micro_batch = 2, .smoothing = 0.1}), whole);
  CHECK_FALSE(build({{"arch", "vit"},
                     {"image_size", 8},
                     {"num_classes", 2},
                     {"dim", 8},
                     {"depth", 1},
                     {"tokenizer", {{"kind", "patch"}, {"patch_size", 4}}},
                     {"attention", {{"heads", 1}}}})
                  .token_targets);
}

TEST_CASE("a run learns from token labels beside its pictures, and goes on exactly") {
  const TemporaryFolder folder;
  put_data(folder);
  const Said said = tessera_program(arguments(folder, "run") + with_maps(folder));
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  REQUIRE(
      tessera_program(arguments(folder, "parts") + with_maps(folder) + " --stop-after 5 --threads 1").code ==
      0);
  REQUIRE(tessera_program("train --resume " + (folder / "parts").string()).code == 0);
  check_same_end(folder / "run", folder / "parts");
  REQUIRE(tessera_program(arguments(folder, "plain")).code == 0);
  CHECK(bytes_of(folder / "run" / "metrics.csv") != bytes_of(folder / "plain" / "metrics.csv"));

  // The maps lie beside the training alone: evaluation does not ask for them.
  std::filesystem::remove_all(folder / "maps");
  const Said eval =
      tessera_program("eval " + (folder / "run").string() + " --data " + folder.path().string() + " --json");
  CAPTURE(eval.err);
  REQUIRE(eval.code == 0);
  CHECK(eval.json()["top1"] == 1.0);
}

TEST_CASE("token labels that do not fit are refused before a run begins") {
  const TemporaryFolder folder;
  put_data(folder);
  const std::string run = arguments(folder, "run");
  check_refused(run + with_maps(folder, "none"), "none: no such folder");
  check_refused(run + with_maps(folder) + " --set augment.mixup=1", "token labels are not mixed");
  check_refused(run + with_maps(folder) + " --set augment.resized_crop=null", "give augment.resized_crop");
  check_refused(run + with_maps(folder) + " --set model=vit", "trained by token labelling");
  check_refused(run + with_maps(folder) + " --set model.dense=false --set model.mix_token=false",
                "trained by token labelling");
  check_refused(run + " --set data.token_labels=3", "token_labels");
  std::filesystem::remove(folder / "maps/white/7.safetensors");
  check_refused(run + with_maps(folder), "train/white/7.png has no map");
  CHECK(!std::filesystem::exists(folder / "run"));
}
