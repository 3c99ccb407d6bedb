#pragma once

#include <string>

#include "apps/options/command.h"
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

}  // namespace tessera
