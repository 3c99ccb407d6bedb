// Bits that flip on a disk. TESSERA_FLIPS says how many; ten thousand take some minutes.
//
// Whatever bit of whatever file of a run folder has changed, the run that goes on ends with the bytes of an
// undisturbed one, or with an error; and a file that then differs cannot be read as if nothing had happened.

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>

#include "apps/reporting/run_record.h"
#include "engine/core/parallel.h"
#include "tests/training/small_run.h"

namespace fs = std::filesystem;
using namespace tessera;

namespace {

int flips_wanted() {
  const char* wanted = std::getenv("TESSERA_FLIPS");
  return wanted ? std::atoi(wanted) : 100;
}

// Goes on with the run as `tessera train --resume` does; what it complains of.
std::string resumed(const fs::path& path, const Dataset& dataset) {
  const Quiet quiet;
  try {
    RunFolder folder = RunFolder::open(path);
    TrainConfig config = read_train_config(read_json(folder.config()), folder.config().string());
    config.model = resolve_model(config.model, dataset);
    Trainer trainer(config, dataset, {});
    trainer.restore(folder);
    trainer.run(folder, {});
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

bool can_be_read(const fs::path& checkpoint) {
  try {
    read_checkpoint(checkpoint, Device::cpu);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

// The file of a finished run that differs from the undisturbed one's, and is believed.
std::string silently_different(const fs::path& whole, const fs::path& run) {
  for (const char* name : {"metrics.csv", "state.safetensors", "last.safetensors", "best.safetensors"}) {
    if (bytes_of(whole / name) == bytes_of(run / name)) continue;
    const bool weights = std::string(name) == "last.safetensors" || std::string(name) == "best.safetensors";
    if (!weights || can_be_read(run / name)) return name;
  }
  return "";
}

bool is_log(const std::string& name) {
  return name == "metrics.csv" || name == "steps.csv" || name == "events.jsonl";
}

// The events without their last member, the checksum, whose key a flip may have changed.
std::vector<Json> events_of(RunRecord run) {
  for (Json& event : run.events) event.erase(std::prev(event.end()));
  return run.events;
}

// Whether reports say that a log has been changed, or cannot read it; or whether all that it says is the
// same.
bool is_told_or_harmless(const fs::path& before, const fs::path& run, const std::string& log) {
  try {
    const RunRecord record = read_run(run);
    return !record.changed.empty() ||
           (log == "events.jsonl" && events_of(record) == events_of(read_run(before)));
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

TEST_CASE("a flipped bit in any file of a run changes no result in silence") {
  const TemporaryFolder folder;
  const fs::path whole = folder / "whole", before = folder / "before", path = folder / "run";
  set_threads(1);
  const SmallRun run = small_run({{"model", small_vit}, {"ema", 0.9}});
  train_in(whole, run);
  train_in(before, run, {.steps = 4});
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(before)) files.push_back(entry.path().filename());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() == 8);

  std::mt19937_64 random(11);
  std::map<std::string, int> refused;
  int same = 0;
  for (int i = 0; i < flips_wanted(); ++i) {
    const std::string& name = files[random() % files.size()];
    fs::copy(before, path);
    std::string bytes = bytes_of(path / name);
    const uint64_t bit = random() % (8 * bytes.size());
    CAPTURE(name);
    CAPTURE(bit);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    put(path / name, bytes);
    if (is_log(name)) CHECK(is_told_or_harmless(before, path, name));
    if (name == "last.safetensors" || name == "best.safetensors") CHECK(!can_be_read(path / name));
    const std::string complaint = resumed(path, run.dataset);
    CAPTURE(complaint);
    if (complaint.empty()) {
      ++same;
      CHECK(silently_different(whole, path) == "");
    } else {
      ++refused[name];
      CHECK(name == "config.json");  // a state has one before it, all else is written again
    }
    fs::remove_all(path);
  }
  set_threads(0);
  CHECK(same > 0);
  CHECK(refused.size() == 1);
  MESSAGE(flips_wanted(), " flips: ", same, " runs ended with the bytes of an undisturbed one, ",
          refused["config.json"], " were refused, none ended otherwise");
}
