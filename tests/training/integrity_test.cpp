// A saved state that is damaged, or is of another run, is never gone on with in silence.

#include <doctest/doctest.h>

#include <random>

#include "apps/training/run_identity.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "tests/error_of.h"
#include "tests/training/small_run.h"

namespace fs = std::filesystem;
using namespace tessera;

namespace {

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

void flip(const fs::path& file, uint64_t bit) {
  std::string bytes = bytes_of(file);
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  put(file, bytes);
}

// Goes on with the run in `path` under `config`; what is wrong with it, or nothing.
std::string resumed(const fs::path& path, const SmallRun& run) {
  return error_of([&] { train_in(path, run); });
}

// The state with another metadata, as a program that knows the format would write it.
void rewrite(const fs::path& state, const std::string& key, const std::string& value) {
  TensorFile file = read_safetensors(state);
  file.metadata[key] = value;
  write_safetensors(state, file.tensors, file.metadata);
}

}  // namespace

TEST_CASE("each flipped bit of a state is found; the state before takes its place, and the end is the same") {
  const TemporaryFolder folder;
  const SmallRun run = small_run({{"model", small_vit}, {"ema", 0.9}});
  const fs::path whole = folder / "whole", before = folder / "before", path = folder / "run";
  train_in(whole, run);
  train_in(before, run, {.steps = 4});  // one epoch of three steps, and one
  REQUIRE(fs::exists(before / "state.previous.safetensors"));
  const uint64_t bits = 8 * fs::file_size(before / "state.safetensors");
  std::mt19937_64 random(7);
  for (int i = 0; i < 40; ++i) {
    const uint64_t bit = random() % bits;
    CAPTURE(bit);
    fs::copy(before, path);
    flip(path / "state.safetensors", bit);
    CHECK(error_of([&] { read_safetensors(path / "state.safetensors"); }) != "");
    CHECK(train_in(path, run) == Ending::finished);
    CHECK(says(bytes_of(path / "events.jsonl"), "\"event\":\"fell_back\""));
    check_same_files(whole, path);
    fs::remove_all(path);
  }
}

TEST_CASE("a damaged state with none before it is an error, and so are two damaged ones") {
  const TemporaryFolder folder;
  const SmallRun run = small_run({{"model", small_vit}});
  train_in(folder / "run", run, {.steps = 2});
  CHECK(!fs::exists(folder / "run/state.previous.safetensors"));
  flip(folder / "run/state.safetensors", 8 * fs::file_size(folder / "run/state.safetensors") - 9);
  CHECK(says(resumed(folder / "run", run), "state.safetensors: is damaged: its bytes have the checksum"));

  train_in(folder / "later", run, {.steps = 4});
  for (const char* name : {"later/state.safetensors", "later/state.previous.safetensors"})
    flip(folder / name, 8 * fs::file_size(folder / name) - 9);
  CHECK(says(resumed(folder / "later", run), "state.previous.safetensors: is damaged"));
}

TEST_CASE("the state of another run is refused with the keys that differ") {
  const TemporaryFolder folder;
  const SmallRun run = small_run({{"model", small_vit}});
  train_in(folder / "run", run, {.steps = 4});
  Json heads = small_vit;
  heads.merge_patch({{"attention", {{"heads", 4}, {"head_dim", 2}}}});
  const struct {
    Json changes;
    const char* why;
  } others[] = {{{{"seed", 4}}, "\nseed is 4, the state was saved with 3"},
                {{{"optimizer", {{"lr", 0.5}}}}, "\noptimizer.lr is 0.5, the state was saved with"},
                {{{"model", heads}}, "\nmodel.attention.heads is 4, the state was saved with 2"},
                {{{"epochs", 9}}, "\nepochs is 9, the state was saved with 2"}};
  for (const auto& other : others) {
    CAPTURE(other.why);
    Json changes{{"model", small_vit}};
    changes.merge_patch(other.changes);
    const std::string error = resumed(folder / "run", small_run(changes));
    CAPTURE(error);
    CHECK(says(error, "was saved by another run, or config.json has been edited"));
    CHECK(says(error, other.why));
  }
  CHECK(resumed(folder / "run", run) == "");
}

TEST_CASE("a key that is named as changed may differ, and the next session knows it") {
  const TemporaryFolder folder;
  const Quiet quiet;
  train_in(folder / "run", small_run({{"model", small_vit}}));
  const SmallRun longer = small_run({{"model", small_vit}, {"epochs", 3}});
  {
    RunFolder run = RunFolder::open(folder / "run");
    Trainer trainer(longer.config, longer.dataset, {});
    CHECK(trainer.restore(run, {"epochs"}));
    CHECK(!trainer.finished());
  }
  CHECK(resumed(folder / "run", longer) == "");
  CHECK(read_safetensors(folder / "run/last.safetensors").metadata.at("training").find("\"epoch\":3") !=
        std::string::npos);
}

TEST_CASE("a state whose text is not possible, of another format, or without its checksum is refused") {
  const TemporaryFolder folder;
  const SmallRun run = small_run({{"model", small_vit}});
  train_in(folder / "run", run, {.steps = 2});
  const fs::path state = folder / "run/state.safetensors";
  const std::string good = bytes_of(state);
  Json position = parse_json(read_safetensors(state).metadata.at("position"), "position");
  position["skipped"] = int64_t{1} << 62;
  rewrite(state, "position", position.dump());
  CHECK(says(resumed(folder / "run", run), "steps were left out"));
  put(state, good);
  rewrite(state, "format", "tessera state 3");
  CHECK(says(resumed(folder / "run", run), "has the format 'tessera state 3', this program reads"));
  std::string bytes = good;
  bytes.replace(bytes.find("\"xxh3\""), 6, "\"xxh4\"");
  put(state, bytes);
  CHECK(says(resumed(folder / "run", run), "has no checksum"));
  put(state, good);
  CHECK(resumed(folder / "run", run) == "");
}

TEST_CASE("a state of the format before is gone on with, for as much as it says") {
  const TemporaryFolder folder;
  const SmallRun run = small_run({{"model", small_vit}});
  train_in(folder / "whole", run);
  train_in(folder / "run", run, {.steps = 2});
  const fs::path state = folder / "run/state.safetensors";
  TensorFile file = read_safetensors(state);
  write_safetensors(state, file.tensors,
                    {{"format", "tessera state 1"}, {"position", file.metadata.at("position")}});
  std::string bytes = bytes_of(state);
  bytes.replace(bytes.find("\"xxh3\""), 6, "\"none\"");
  put(state, bytes);
  CHECK(resumed(folder / "run", run) == "");
  check_same_files(folder / "whole", folder / "run");
}

TEST_CASE("rows of metrics.csv that were changed become those of the state again") {
  const TemporaryFolder folder;
  const SmallRun run = small_run({{"model", small_vit}});
  train_in(folder / "whole", run);
  train_in(folder / "run", run, {.steps = 4});
  for (const std::string& garbage :
       {std::string("garbage"), std::string(), std::string(1, '\0') + "\n\n\n"}) {
    const TemporaryFolder other;
    fs::copy(folder / "run", other / "run");
    put(other / "run/metrics.csv", garbage);
    CHECK(resumed(other / "run", run) == "");
    check_same_files(folder / "whole", other / "run");
  }
}

TEST_CASE("weights that are not finite are not begun with") {
  const TemporaryFolder folder;
  const SmallRun run = small_run({{"model", small_vit}});
  train_in(folder / "run", run);
  TensorFile file = read_safetensors(folder / "run/last.safetensors");
  for (auto& [name, tensor] : file.tensors)
    if (name == "head.bias") tensor.data<float>()[3] = -std::numeric_limits<float>::infinity();
  write_safetensors(folder / "bad.safetensors", file.tensors, file.metadata);
  const std::string from = folder / "bad.safetensors";
  const std::string error = error_of([&] { read_checkpoint(from, Device::cpu); });
  CHECK(says(error, "'head.bias', [10]: 1 of its 10 numbers"));
  CHECK(says(error, "the first at [3]; weights must be finite"));
  const SmallRun init = small_run({{"model", small_vit}, {"init", {{"weights", from}}}});
  CHECK(says(error_of([&] { Trainer(init.config, init.dataset, {}); }), "weights must be finite"));
}

TEST_CASE("--set of a run: how long and how fast it goes on, and nothing else") {
  Json config{{"epochs", 2}, {"optimizer", {{"lr", 0.1}}}};
  change_key(config, "epochs=7");
  change_key(config, "optimizer.lr=0.01");
  CHECK(config["epochs"] == 7);
  CHECK(config["optimizer"]["lr"] == 0.01);
  CHECK(says(error_of([&] { change_key(config, "seed=1"); }), "--set seed would make it another run"));
  CHECK(says(error_of([&] { change_key(config, "epoch=1"); }), "did you mean 'epochs'"));
}
