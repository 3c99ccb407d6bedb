#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/io/temporary_folder.h"

namespace fs = std::filesystem;

namespace {

struct Rule {
  std::string forbidden, reason;
  std::vector<std::string> exempt;  // files
};

// The forbidden words are put together here, or this file would hold them.
const std::vector<Rule> rules{
    {std::string("_THROWS") + "(", "expects an error without a look at its message", {}},
    {std::string("_THROWS_AS") + "(", "expects an error without a look at its message", {}},
    {std::string("temp_directory") + "_path",
     "makes a name of its own below the temporary folder, where two runs may meet; use TemporaryFolder",
     {"tests/io/temporary_folder.h", "tests/fuzz/input.h", "tests/house/layering_test.cpp",
      "tests/house/tree_test.cpp"}},
};

// One line for each rule that the text of a test breaks.
std::vector<std::string> breaches_of(const std::string& path, const std::string& text) {
  std::vector<std::string> breaches;
  for (const auto& [forbidden, reason, exempt] : rules) {
    const bool is_exempt = std::find(exempt.begin(), exempt.end(), path) != exempt.end();
    if (!is_exempt && text.find(forbidden) != std::string::npos) breaches.push_back(path + ": " + reason);
  }
  return breaches;
}

}  // namespace

TEST_CASE("tests: what no test may hold is found") {
  const std::string expected = std::string("CHECK_THROWS") + "_AS(f(), Error);";
  CHECK(breaches_of("tests/a_test.cpp", expected) ==
        std::vector<std::string>{"tests/a_test.cpp: expects an error without a look at its message"});
  CHECK(breaches_of("tests/a_test.cpp", std::string("REQUIRE_THROWS") + "(f());").size() == 1);
  CHECK(breaches_of("tests/a_test.cpp", "CHECK_THROWS_WITH_AS(f(), \"why\", Error);").empty());
  const std::string folder = std::string("fs::temp_directory") + "_path() / \"tessera\"";
  CHECK(breaches_of("tests/a_test.cpp", folder).size() == 1);
  CHECK(breaches_of("tests/io/temporary_folder.h", folder).empty());
}

TEST_CASE("tests: errors are expected with their message, files written in folders of their own") {
  int seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(TESSERA_SOURCE "/tests")) {
    const fs::path& path = entry.path();
    if (path.extension() != ".cpp" && path.extension() != ".h") continue;
    ++seen;
    const std::string name = fs::relative(path, TESSERA_SOURCE).generic_string();
    for (const std::string& breach : breaches_of(name, tessera::bytes_of(path))) FAIL_CHECK(breach);
  }
  CHECK(seen > 100);
}
