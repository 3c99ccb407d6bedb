// Everything that a run asks of the system fails in turn, from its first call on, in a run that is new: it
// must end with one line, and can be begun again or gone on with.

#include <doctest/doctest.h>

#include <set>

#include "tests/torture/tortured_run.h"

namespace fs = std::filesystem;
using namespace tessera;

namespace {

// How many of the calls are made to fail: TESSERA_FAULTS_EACH=0 means every one, which takes hours.
int faults_wanted() {
  const char* wanted = std::getenv("TESSERA_FAULTS_EACH");
  return wanted ? std::atoi(wanted) : 60;
}

// The number of the first call that fails, from 0: TESSERA_FAULTS_FROM goes on with what takes hours.
int64_t first_fault() {
  const char* first = std::getenv("TESSERA_FAULTS_FROM");
  return first ? std::atoll(first) : 0;
}

// A whole new run while the N-th call fails.
class NewRun {
 public:
  NewRun() { REQUIRE(shell(arguments(folder_ / "whole")).code == 0); }

  // How many such calls a run makes.
  int64_t calls(const std::string& call) const {
    const fs::path run = folder_ / "run", mark = folder_ / "mark";
    int64_t below = 0, above = 1;  // the first is made, the second is not
    while (struck(call, above)) below = above, above *= 4;
    while (above - below > 1) {
      const int64_t middle = (below + above) / 2;
      (struck(call, middle) ? below : above) = middle;
    }
    return below;
  }

  // It ends with one line and exit code 2, or does without; and can then be gone on with, to the same end,
  // which is tried once for each content of the folder: most requests for memory leave one of a few.
  void strike(const std::string& call, int64_t at) {
    CAPTURE(call);
    CAPTURE(at);
    const fs::path run = folder_ / "run";
    const Said said = failing(call, at);
    CAPTURE(said.code);
    CAPTURE(said.err);
    CHECK((said.code == 0 || said.code == 2));
    CHECK(std::count(said.err.begin(), said.err.end(), '\n') <= 1);
    CHECK((said.code == 0 || said.err.starts_with("tessera: ")));
    const bool begun = fs::exists(run / "config.json");
    if (!left_.insert(content_of(run)).second) return;
    if (begun) check_readable(run);
    const std::string rest = begun ? program_path() + " train --resume " + run.string() : arguments(run);
    const Said end = shell(rest);
    CAPTURE(end.err);
    CHECK(end.code == 0);
    check_same_run(folder_ / "whole", run);
  }

 private:
  static std::string arguments(const fs::path& run) {
    return program_path() + " train --out " + run.string() + in_quotes(tiny_run(false));
  }

  // The run while the N-th call fails. If it hangs, it is ended, with another code than 0 or 2.
  Said failing(const std::string& call, int64_t at) const {
    fs::remove_all(folder_ / "run");
    return shell("timeout -s KILL 120 env LD_PRELOAD=" TESSERA_FAULTS " FAULT_FOLDER=" +
                 (folder_ / "run").string() + " FAULT_CALL=" + call + " FAULT_AT=" + std::to_string(at) +
                 " FAULT_MARK=" + (folder_ / "mark").string() + " " + arguments(folder_ / "run"));
  }

  bool struck(const std::string& call, int64_t at) const {
    failing(call, at);
    return fs::remove(folder_ / "mark");
  }

  // All that a run goes on from: the names and bytes of its files; of those that hold times the lines and how
  // they end.
  static std::string content_of(const fs::path& run) {
    std::string content;
    if (!fs::exists(run)) return content;
    for (const std::string& name : files_of(run)) {
      const std::string bytes = bytes_of(run / name);
      content += name + '\n';
      if (name == "events.jsonl" || name == "report.html")
        content +=
            std::to_string(std::count(bytes.begin(), bytes.end(), '\n')) + (bytes.ends_with('\n') ? "" : "+");
      else
        content += bytes;
    }
    return content;
  }

  TemporaryFolder folder_;
  std::set<std::string> left_;
};

}  // namespace

TEST_CASE(
    "whichever call to the disk fails in a whole new run, it ends with one line and can be gone on with") {
  NewRun run;
  for (const std::string call :
       {"open", "write", "short", "chmod", "fsync", "close", "rename", "mkdir", "find", "read", "flock"}) {
    const int64_t all = run.calls(call);
    CHECK(all > 0);
    const bool each = std::getenv("TESSERA_FAULTS_EACH") == nullptr || faults_wanted() == 0;
    const int64_t wanted = each ? all : std::min<int64_t>(all, faults_wanted());
    for (int64_t i = 0; i < wanted; ++i) run.strike(call, 1 + i * all / wanted);
    MESSAGE(call, ": ", wanted, " of ", all, " calls");
  }
}

#ifndef FAULTS_OF_FILES_ALONE
TEST_CASE("whichever request for memory fails, a run ends with one line, or goes on, and nothing is lost") {
  NewRun run;
  for (const std::string call : {"malloc", "mmap"}) {
    const int64_t all = run.calls(call);
    const int64_t wanted = faults_wanted() == 0 ? all : std::min<int64_t>(all, faults_wanted());
    for (int64_t i = call == "malloc" ? first_fault() : 0; i < wanted; ++i)
      run.strike(call, 1 + i * all / wanted);
    MESSAGE(call, ": ", wanted, " of ", all, " calls");
  }
}
#endif
