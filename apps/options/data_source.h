#pragma once

#include <string>

#include "apps/options/command.h"
#include "apps/training/checkpoint.h"
#include "data/dataset.h"

namespace tessera {

// A data set as the subcommands of `tessera data` name it.
struct DataSource {
  std::string name, folder;
  bool coarse_labels = false;

  DatasetOptions options() const {
    DatasetOptions options;
    options.coarse_labels = coarse_labels;
    return options;
  }
};

// Adds NAME, DIR (or --data DIR) and --coarse-labels.
void add_source(Command& command, DataSource& source);

// The folder of the data that the run beside the checkpoint was trained on; empty where there is no such run.
std::string data_folder_of(const Checkpoint& checkpoint);

}  // namespace tessera
