// apps/commands holds one file for each subcommand, nested ones in folders.

#include "apps/commands/commands.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>

#include "tests/io/temporary_folder.h"

namespace fs = std::filesystem;
using Names = std::set<std::string>;

namespace {

#define TESSERA_NAME(name) #name,
const Names commands{TESSERA_COMMANDS(TESSERA_NAME)};
const Names bench_commands{TESSERA_BENCH_COMMANDS(TESSERA_NAME)};
const Names data_commands{TESSERA_DATA_COMMANDS(TESSERA_NAME)};
#undef TESSERA_NAME

// "models" for each file models.cpp of the folder, and "bench/" for each folder in it.
Names entries(const fs::path& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) names.insert(entry.path().filename().string() + "/");
    if (entry.path().extension() == ".cpp") names.insert(entry.path().stem().string());
  }
  return names;
}

Names operator+(Names a, const Names& b) {
  a.insert(b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("commands: exactly one file for each subcommand, nested ones in folders") {
  const fs::path folder = TESSERA_SOURCE "/apps/commands";
  CHECK(entries(folder) == commands + Names{"bench/", "data/"});
  CHECK(entries(folder / "bench") == bench_commands);
  CHECK(entries(folder / "data") == data_commands);
}

TEST_CASE("commands: an extra file, a missing one and a folder are seen") {
  const tessera::TemporaryFolder folder;
  for (const char* name : {"train.cpp", "eval.cpp", "notes.md"}) tessera::put(folder / name, "");
  CHECK(entries(folder.path()) == Names{"eval", "train"});
  fs::create_directory(folder.path() / "bench");
  CHECK(entries(folder.path()) == Names{"bench/", "eval", "train"});
}
