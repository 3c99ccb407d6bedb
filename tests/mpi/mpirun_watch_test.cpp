// The watch over mpirun, with a shell in its place.

#include "tests/mpi/mpirun_watch.h"

#include <doctest/doctest.h>

#include "tests/io/temporary_folder.h"

using namespace tessera;

namespace {

// The code that the watch gives, and whether it had to end a shell that runs `commands` after it has told its
// pid.
std::optional<int> watched(const std::string& commands) {
  const TemporaryFolder folder;
  const std::string pid_file = folder / "pid";
  MpirunWatch watch(pid_file, std::chrono::seconds(1));
  const int status = std::system(("sh -c 'echo $$ >" + pid_file + "; " + commands + "'").c_str());
  const std::optional<int> code = watch.code_of_ranks();
  CHECK(WIFEXITED(status));
  CHECK((WEXITSTATUS(status) == 128 + SIGKILL) == code.has_value());
  return code;
}

}  // namespace

TEST_CASE("an mpirun that hangs is ended when its ranks have ended, with the largest of their codes") {
  CHECK(watched("(exit 0) & (exit 3) & exec sleep 60") == 3);
  CHECK(watched("sh -c \"kill -9 \\$\\$\" & exec sleep 60") == 128 + SIGKILL);
}

TEST_CASE("an mpirun is left alone while a rank lives, or has not begun") {
  CHECK(!watched("(exit 3) & sleep 5 & exec sleep 2"));
  CHECK(!watched("exec sleep 2"));
}
