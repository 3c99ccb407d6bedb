// Losses and gradients that are not finite. A picture that is not black becomes infinite here, as the data
// set's deviation is next to nothing; so the test says which step goes wrong.

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "apps/training/number_watch.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "tests/error_of.h"
#include "tests/training/small_run.h"

using namespace tessera;

namespace {

// `pictures` of 8 x 8 pixels, black but for the first `white`.
std::shared_ptr<const Split> pictures_of(int64_t pictures, int64_t white) {
  std::vector<uint8_t> pixels(static_cast<size_t>(pictures * 8 * 8 * 3), 0);
  std::fill_n(pixels.begin(), white * 8 * 8 * 3, uint8_t{255});
  std::vector<int32_t> labels(static_cast<size_t>(pictures));
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(i % 3);
  return std::make_shared<StoredSplit>(8, 8, 3, std::move(pixels), std::move(labels), "test");
}

SmallRun run_with(const Json& changes, int64_t white, int64_t white_in_validation = 0) {
  Dataset dataset{.name = "shapes",
                  .class_names = {"a", "b", "c"},
                  .image_shape = {3, 8, 8},
                  .normalisation = {{0, 0, 0}, {1e-39f, 1e-39f, 1e-39f}},
                  .train = pictures_of(30, white),
                  .validation = pictures_of(6, white_in_validation),
                  .notes = {}};
  return small_run(changes, std::move(dataset));
}

// The column of metrics.csv, row by row.
std::vector<std::string> column_of(const std::filesystem::path& run, const std::string& name) {
  std::istringstream text(bytes_of(run / "metrics.csv"));
  std::vector<std::string> found;
  int64_t wanted = -1;
  for (std::string line; std::getline(text, line);) {
    std::istringstream cells(line);
    int64_t column = 0;
    for (std::string cell; std::getline(cells, cell, ','); ++column) {
      if (wanted < 0 && cell == name)
        wanted = -2 - column;
      else if (column == wanted)
        found.push_back(cell);
    }
    if (wanted < -1) wanted = -2 - wanted;
  }
  return found;
}

void check_finite(const std::filesystem::path& file) {
  CAPTURE(file.string());
  CHECK(first_not_finite(read_safetensors(file).tensors) == std::nullopt);
}

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

}  // namespace

TEST_CASE("a step that is not finite is left out, and counted") {
  for (const Json& model : {small_vit, small_resnet}) {
    CAPTURE(model["arch"]);
    const SmallRun run = run_with({{"model", model}, {"ema", 0.9}, {"augment", {{"crop_padding", 0}}}}, 1);
    const TemporaryFolder folder;
    const auto path = folder / "run";
    REQUIRE(train_in(path, run) == Ending::finished);
    CHECK(column_of(path, "skipped") == std::vector<std::string>{"1", "1"});  // the white one's step
    for (const char* file : {"last.safetensors", "best.safetensors", "state.safetensors"})
      check_finite(path / file);
    const std::string events = bytes_of(path / "events.jsonl");
    CHECK(says(events, "\"event\":\"skipped\""));
    CHECK(says(events, "the images hold bad numbers: "));
    CHECK(says(events, " of its 1152 numbers are infinite, the first at ["));

    for (int64_t k = 1; k < 10; ++k) {
      CAPTURE(k);
      const auto parts = folder / ("parts-" + std::to_string(k));
      train_in(parts, run, {.steps = k});
      train_in(parts, run);
      check_same_files(path, parts);
    }
  }
}

TEST_CASE("three steps in a row that are not finite end the run with the way on") {
  const TemporaryFolder folder;
  const SmallRun run = run_with({{"model", small_vit}, {"augment", {{"crop_padding", 0}}}}, 30);
  const std::string error = error_of([&] { train_in(folder / "run", run); });
  CHECK(says(error, "epoch 1, step 3: the loss is nan; "));
  CHECK(says(error, "3 steps in a row"));
  CHECK(says(error, "lower learning rate"));
  CHECK(says(error, "clip"));
  CHECK(says(error, "tessera train --recipe " + (folder / "run/config.json").string()));
  CHECK(!std::filesystem::exists(folder / "run/last.safetensors"));
}

TEST_CASE("an evaluation that is not finite is never the best one") {
  const TemporaryFolder folder;
  const SmallRun run = run_with({{"model", small_vit}, {"augment", {{"crop_padding", 0}}}}, 0, 6);
  REQUIRE(train_in(folder / "run", run, {.steps = 7}) == Ending::stopped);
  REQUIRE(train_in(folder / "run", run) == Ending::finished);
  CHECK(column_of(folder / "run", "validation_top1") == std::vector<std::string>{"0", "0"});
  check_finite(folder / "run/last.safetensors");
  CHECK(!std::filesystem::exists(folder / "run/best.safetensors"));
}

TEST_CASE("weights that are not finite are never saved") {
  const TemporaryFolder folder;
  // Finite gradients, and a rate at which the step overflows; the last step's weights are seen by no other.
  const SmallRun run = small_run({{"model", small_vit},
                                  {"epochs", 1},
                                  {"steps", 1},
                                  {"optimizer", {{"kind", "sgd"}, {"lr", 3e38}, {"weight_decay", 1e10}}},
                                  {"schedule", {{"warmup_epochs", 0}, {"min_lr", 3e38}}}});
  const std::string error = error_of([&] { train_in(folder / "run", run); });
  CHECK(says(error, "last.safetensors: not written, what was there before is untouched: '"));
  CHECK(says(error, "--lr"));
  CHECK(!std::filesystem::exists(folder / "run/last.safetensors"));
  CHECK(!std::filesystem::exists(folder / "run/best.safetensors"));
  CHECK(!std::filesystem::exists(folder / "run/state.safetensors"));
}
