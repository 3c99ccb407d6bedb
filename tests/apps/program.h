#pragma once

#include <sys/wait.h>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/io/temporary_folder.h"

namespace tessera {

// How one run of the program ended, and what it said.
struct Said {
  int code;  // -1 if it crashed
  std::string out, err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
  bool complains_of(const std::string& what) const {
    return err.starts_with("tessera: ") && err.find(what) != std::string::npos;
  }
};

// Runs the program with `arguments`, as a shell reads them.
inline Said tessera_program(const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string out = folder / "out", err = folder / "err";
  const int status = std::system((TESSERA_BINARY " " + arguments + " >" + out + " 2>" + err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(out), bytes_of(err)};
}

inline std::string fixture(const std::string& name) {
  return std::string(TESSERA_FIXTURES "/") + name + ".safetensors";
}

}  // namespace tessera
