#pragma once

#include <string>
#include <vector>

#include "apps/options.h"
#include "apps/trainer.h"

namespace tessera {

// The command line of tessera train.
struct TrainOptions {
  CLI::App* command = nullptr;
  std::string recipe, dataset, data, model, init, out, resume;
  bool resize_positions = false, fresh_head = false;
  std::vector<std::string> assignments;
  int64_t epochs = 0, batch = 0, image_size = 0, seed = 0;
  double lr = 0;
  bool tensorboard = false;
  bool list_recipes = false, print_config = false;
  StopAfter stop;
  bool find_lr = false, json = false;
  Computing computing;

  bool given(const std::string& option) const { return command->get_option(option)->count() > 0; }
};

// Declares them on `command`; both must live until it has run.
void add_train_options(CLI::App& command, TrainOptions& options);

// The config of a new run: the recipe's, if there is one, with what the other options change.
TrainConfig train_config_of(const TrainOptions& options);

}  // namespace tessera
