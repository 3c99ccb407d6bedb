#pragma once

// What the subcommands of `tessera data` share.

#include <string>
#include "apps/options/command.h"

#include "data/dataset.h"

namespace tessera {

// A data set as the command line names it.
struct DataSource {
  std::string name, folder;
  bool coarse_labels = false;

  DatasetOptions options() const {
    DatasetOptions options;
    options.coarse_labels = coarse_labels;
    return options;
  }
};

// NAME, DIR (or --data DIR) and --coarse-labels.
void add_source(Command& command, DataSource& source);

// The subcommands of `tessera data`, a file each: data_fetch.cpp, data_check.cpp, data_show.cpp.
void add_fetch(Command& data);
void add_check(Command& data);
void add_show(Command& data);

}  // namespace tessera
