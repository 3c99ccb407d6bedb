#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/options/options.h"
#include "apps/reporting/ablation.h"
#include "engine/io/json.h"

namespace tessera {

// The options of `tessera ablate`.
struct AblateOptions {
  Command* command = nullptr;
  std::string recipe, dataset, data, out;
  std::vector<std::string> grid, assignments;
  int64_t seeds = 1, epochs = 0;
  bool json = false;
  Device device = Device::cpu;

  bool given(const std::string& option) const { return command->given(option); }
};

// The grid as a whole, as ablation.json holds it.
struct Ablation {
  Json base;  // the config that every cell starts from
  std::vector<Switch> switches;
  std::vector<Choice> choices;
  int64_t seeds = 1, first_seed = 0;
  std::filesystem::path out;

  // The config of a cell.
  Json config(size_t choice, int64_t seed) const;
  // Its run folder.
  std::filesystem::path folder(size_t choice, int64_t seed) const;
};

// Declares them on `command`; both must live until it has run.
void add_ablate_options(Command& command, AblateOptions& options);

// The grid that they make. Fails for a recipe, a key or a value that is none.
Ablation ablation_of(const AblateOptions& options);

// Writes ablation.json, which says what the folder holds. Fails if the folder holds another ablation, unless
// that one has no cell yet, as where a misspelt grid was refused.
void claim(const Ablation& a);

}  // namespace tessera
