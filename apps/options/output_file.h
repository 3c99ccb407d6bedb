#pragma once

#include <filesystem>
#include <string>

namespace tessera {

// Checks a file that a command is going to write, before it computes what belongs there. Fails where the file
// is one of a run's own, or where it cannot be written; `option` names what asked for it: "eval: --csv". An
// empty path is of an option that was not given.
void expect_output(const std::string& option, const std::filesystem::path& path);

}  // namespace tessera
