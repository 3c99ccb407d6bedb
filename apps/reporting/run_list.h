#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/reporting/run_record.h"
#include "engine/io/json.h"

namespace tessera {

/// The runs of a folder and of those in it, four levels deep: every folder with a config.json of a run.
struct RunList {
  Json rows = Json::array();          ///< as summary_of, and run (the path below the folder), state, started,
                                      ///< differs (an object with the keys of `keys`), notes
  std::vector<std::string> keys;      ///< of the configs, whose values are not all the same
  std::vector<std::string> warnings;  ///< why a folder is left out, of a run or not to be looked into, and
                                      ///< what files of a run have been changed
};

/// The state of a run: "finished", "training" (a process has it at the moment), "stopped", "failed", "broken
/// off" (killed without a word).
std::string state_of(const RunRecord& run);

RunList list_runs(const std::filesystem::path& folder);

/// Sorts rows by a key of theirs or of `differs`, or by "run"; rows without it come last. Scores come with
/// the best first, and times and numbers with the largest first; `reversed` the other way round.
void sort_runs(RunList& list, const std::string& key, bool reversed);

/// The keys that rows have and sort_runs takes, without those of the configs.
const std::vector<std::string>& sort_keys();

/// The whole list as CSV, with a column for every key that differs.
std::string run_csv(const RunList& list);

}  // namespace tessera
