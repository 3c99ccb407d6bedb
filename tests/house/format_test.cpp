#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "tests/io/temporary_folder.h"

namespace {

// Other versions of clang-format break some lines elsewhere; this is Debian 12's.
constexpr const char* version = "clang-format version 14.";

constexpr const char* check_all =
    "cd '" TESSERA_SOURCE
    "' && find engine models data apps tests -name '*.h' -o -name '*.cpp' -o -name '*.cu' | "
    "xargs clang-format --dry-run -Werror";

class Shell {
 public:
  // Runs a command; its output follows in `said`.
  bool runs(const std::string& command) {
    const std::string out = (folder_ / "out").string();
    const int status = std::system(("( " + command + " ) >'" + out + "' 2>&1").c_str());
    said = tessera::bytes_of(out);
    return status == 0;
  }

  std::string said;

 private:
  tessera::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("Every source is in the project's format") {
  Shell shell;
  if (!shell.runs("clang-format --version") || shell.said.find(version) == std::string::npos) {
    MESSAGE("skipped: clang-format 14 is not installed");
    return;
  }
  CHECK_FALSE(shell.runs("printf 'int  a ;\\n' | clang-format --dry-run -Werror"));
  CHECK_MESSAGE(shell.runs(check_all), shell.said);
}
