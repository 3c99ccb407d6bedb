#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/training/number_watch.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "tests/commands/program.h"
#include "tests/error_of.h"

namespace tessera {

// A run of 3 epochs of 4 steps that is over in a moment, and saves as often as it can: the arguments of
// tessera train but for --out.
inline std::vector<std::string> tiny_run(bool save_each_step) {
  return {"--dataset",    "shapes",
          "--image-size", "16",
          "--epochs",     "3",
          "--batch",      "6",
          "--threads",    "1",
          "--model",      "vit",
          "--set",        "data.train_images=24",
          "--set",        "data.validation_images=10",
          "--set",        "model.dim=8",
          "--set",        "model.depth=1",
          "--set",        "model.drop_path=0.3",
          "--set",        "model.attention={\"heads\":2,\"head_dim\":4}",
          "--set",        "ema=0.9",
          "--set",        "schedule.warmup_epochs=1",
          "--set",        "checkpoint.every_epochs=1",
          "--set",        "checkpoint.keep=2",
          "--set",        "watch.every_steps=1",
          "--set",        std::string("checkpoint.every_steps=") + (save_each_step ? "1" : "0")};
}

// The same for a shell.
inline std::string in_quotes(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += " '" + word + "'";
  return text;
}

// Runs a command; what it says.
inline Said shell(const std::string& command) {
  const TemporaryFolder folder;
  const std::string out = folder / "out", err = folder / "err";
  const int status = std::system((command + " >" + out + " 2>" + err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(out), bytes_of(err)};
}

// Every file in the folder can be read: tensors, all finite, JSON, rows of metrics of the same width. What is
// there of a file that is being written is counted, not read.
inline int check_readable(const std::filesystem::path& run) {
  int partial = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run)) {
    const std::string name = entry.path().filename();
    CAPTURE(name);
    if (name.ends_with(".partial")) ++partial;
    if (name.ends_with(".safetensors"))
      CHECK(error_of([&] {
              const auto bad = first_not_finite(read_safetensors(entry.path()).tensors);
              check(!bad, bad.value_or(""));
            }) == "");
    if (name == "config.json") CHECK(nlohmann::json::accept(bytes_of(entry.path())));
    if (name != "metrics.csv") continue;
    const std::string text = bytes_of(entry.path());
    CHECK(text.ends_with('\n'));
    const auto lines = std::count(text.begin(), text.end(), '\n');
    CHECK(std::count(text.begin(), text.end(), ',') == 9 * lines);
  }
  return partial;
}

inline std::vector<std::string> files_of(const std::filesystem::path& run) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(run)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// The same files with the same bytes, but for events.jsonl and the report on it, which hold times.
inline void check_same_run(const std::filesystem::path& a, const std::filesystem::path& b) {
  CHECK(files_of(a) == files_of(b));
  for (const std::string& name : files_of(a)) {
    if (name == "events.jsonl" || name == "report.html") continue;
    CAPTURE(name);
    CHECK(bytes_of(a / name) == bytes_of(b / name));
  }
}

}  // namespace tessera
