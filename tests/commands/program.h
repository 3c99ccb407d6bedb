#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/commands/program_path.h"
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

// Runs the program with `arguments` and, before it, settings of the environment, as a shell reads them.
inline Said tessera_program(const std::string& arguments, const std::string& environment = "") {
  const TemporaryFolder folder;
  const std::string out = folder / "out", err = folder / "err";
  const int status =
      std::system((environment + " " + program_path() + " " + arguments + " >" + out + " 2>" + err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(out), bytes_of(err)};
}

// The program refuses the arguments as bad usage, and says why.
inline void check_refused(const std::string& arguments, const std::string& why) {
  CAPTURE(arguments);
  const Said said = tessera_program(arguments);
  CAPTURE(said.err);
  CHECK(said.code == 2);
  CHECK(said.complains_of(why));
}

// Two run folders hold the same metrics, weights and state.
inline void check_same_end(const std::filesystem::path& a, const std::filesystem::path& b) {
  for (const char* name : {"metrics.csv", "best.safetensors", "state.safetensors"}) {
    CAPTURE(name);
    CHECK(bytes_of(a / name) == bytes_of(b / name));
  }
}

inline std::string fixture(const std::string& name) {
  return std::string(TESSERA_FIXTURES "/") + name + ".safetensors";
}

}  // namespace tessera
