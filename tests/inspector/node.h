#pragma once

#include <cstdlib>
#include <string>

#include "tests/commands/program.h"

namespace tessera {

// Whether node is there; says that the test is skipped where it is not.
inline bool has_node() {
  static const bool found = std::system("node --version >/dev/null 2>&1") == 0;
  if (!found) MESSAGE("skipped: node is not installed");
  return found;
}

inline const std::string scripts = TESSERA_SOURCE "/tests/inspector/";

// Runs a script of this folder; its output and errors.
inline Said run_script(const std::string& name, const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string out = folder / "out", err = folder / "err";
  const int status =
      std::system(("node " + scripts + name + " " + arguments + " >" + out + " 2>" + err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(out), bytes_of(err)};
}

}  // namespace tessera
