#pragma once

#include "data/dataset.h"

namespace tessera {

// What open_dataset knows.
std::vector<std::string> dataset_names();

// Whether the data set lies in files, so that a folder must be given (shapes and shapes-seg are made in
// memory).
bool needs_folder(const std::string& name);

// Opens `name` from `dir`: the folder that its archive unpacks, or the parent of that. Fails for an unknown
// name, an option that the data set does not have, and whatever its reader refuses; the message says what was
// expected.
Dataset open_dataset(const std::string& name, const std::filesystem::path& dir,
                     const DatasetOptions& options = {});

}  // namespace tessera
