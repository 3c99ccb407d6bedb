#pragma once

#include <string>
#include <vector>

#include "apps/options/options.h"
#include "apps/training/trainer.h"

namespace tessera {

// The options of `tessera train` and `tessera bench run`.
struct TrainOptions {
  Command* command = nullptr;
  std::string recipe, dataset, data, model, init, out, resume, note, batch;
  bool resize_positions = false, fresh_head = false;
  std::vector<std::string> assignments;
  int64_t epochs = 0, patience = 0, image_size = 0, seed = 0;
  double lr = 0, budget = 0;  // the latter in seconds; 0: none
  bool tensorboard = false;
  bool list_recipes = false, print_config = false;
  StopAfter stop;
  bool find_lr = false, json = false, dry_run = false, overfit = false, quiet = false, verbose = false;
  Computing computing;

  bool automatic_batch() const { return batch == "auto"; }
  bool given(const std::string& option) const { return command->given(option); }
};

// Declares them on `command`; both must live until it has run. The first: what the config of a run is made
// of. The second: what computes it.
void add_config_options(Command& command, TrainOptions& options);
void add_computing_options(Command& command, Computing& computing);
// All of them.
void add_train_options(Command& command, TrainOptions& options);

// The config of a new run: the recipe's, if there is one, with what the other options change.
TrainConfig train_config_of(const TrainOptions& options);

// Fails, naming the known ones, where it says no data set.
void check_dataset_is_named(const TrainConfig& config);

}  // namespace tessera
