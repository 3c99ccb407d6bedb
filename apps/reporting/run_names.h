#pragma once

#include <string>
#include <vector>

namespace tessera {

// Names for the runs at these paths, one each: the folder, or a checkpoint's file without its ending behind
// its folder, after as many of the folders above as all of them need to be told apart.
std::vector<std::string> names_of_runs(const std::vector<std::string>& paths);

}  // namespace tessera
