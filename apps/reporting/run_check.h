#pragma once

// What is wrong with a run folder, in plain words, and what to do about it: `tessera doctor`.

#include <filesystem>
#include <string>
#include <vector>

#include "engine/io/json.h"

namespace tessera {

// One file of a run, or one circumstance.
struct Diagnosis {
  std::string subject;  // a file's name, or "lock", "disk", "run"
  std::string verdict;  // "ok", "note" or "WRONG"
  std::string message;
  std::string advice;  // what to do; empty where nothing is

  bool wrong() const { return verdict == "WRONG"; }
};

// Reads every file of the run folder as training, evaluation and reports do, and writes nothing. Fails where
// the folder is none or holds no file of a run.
std::vector<Diagnosis> check_run(const std::filesystem::path& run);

// Whether the folder holds a file that only a run has.
bool looks_like_a_run(const std::filesystem::path& folder);

Json to_json(const Diagnosis& diagnosis);

}  // namespace tessera
