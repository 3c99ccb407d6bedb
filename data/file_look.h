#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace tessera {

/// What check_files found.
struct FileLook {
  int64_t files = 0, looked_at = 0;  ///< the data set's pictures that are files of their own
  std::vector<std::string> damaged;  ///< a message each, in the data set's order
};

/// Reads the pictures' files, in parallel, for about `seconds` at most, without decoding them (check_intact):
/// the quick look before a run. Pictures that are not files of their own are taken as good.
FileLook check_files(const Dataset& dataset, double seconds);

/// Fails if check_files finds damage, naming up to 20 files. Returns a remark for the user where there was
/// not the time to look at all of them, otherwise nothing.
std::string expect_intact_files(const Dataset& dataset, double seconds);

}  // namespace tessera
