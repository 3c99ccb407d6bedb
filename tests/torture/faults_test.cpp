// The disk fails at every moment in turn: each call that writes a run's files, the first, the second ...
// until there are no more. What was saved before must be whole, or be replaced by what was to follow, and the
// run must go on to the same end.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <sstream>

#include "tests/torture/tortured_run.h"

namespace fs = std::filesystem;
using namespace tessera;

namespace {

struct Fault {
  std::string call;
  bool lasts;
};

class Faults {
 public:
  Faults() {
    REQUIRE(tessera_program("train --out " + (folder_ / "before").string() + " --stop-after 4" +
                            in_quotes(tiny_run(false)))
                .code == 0);
    chmod((folder_ / "before/last.safetensors").c_str(), 0600);
    fs::copy(folder_ / "before", folder_ / "between");
    REQUIRE(tessera_program("train --resume " + (folder_ / "between").string() + " --stop-after 4").code ==
            0);
    fs::copy(folder_ / "between", folder_ / "after");
    REQUIRE(tessera_program("train --resume " + (folder_ / "after").string()).code == 0);
  }

  // The run goes on while the N-th call fails; false if it made less than N of them.
  bool strike(const Fault& fault, int at) const {
    const fs::path run = folder_ / "run", mark = folder_ / "mark";
    fs::remove_all(run);
    fs::copy(folder_ / "before", run);
    const Said said =
        shell("LD_PRELOAD=" TESSERA_FAULTS " FAULT_FOLDER=" + run.string() + " FAULT_CALL=" + fault.call +
              " FAULT_AT=" + std::to_string(at) + " FAULT_LASTS=" + (fault.lasts ? "1" : "0") +
              " FAULT_MARK=" + mark.string() + " " + program_path() + " train --resume " + run.string());
    CAPTURE(said.err);
    const bool struck = fs::remove(mark);
    CHECK(said.code == (struck ? 2 : 0));
    if (struck) check_refusal(said, run);
    check_readable(run);
    check_old_or_new(run);
    REQUIRE(tessera_program("train --resume " + run.string()).code == 0);
    check_same_run(folder_ / "after", run);
    return struck;
  }

  // The same for a call that reads, which may be one that the program can do without.
  bool strike_reading(const std::string& call, int at) const {
    const fs::path run = folder_ / "run", mark = folder_ / "mark";
    fs::remove_all(run);
    fs::copy(folder_ / "before", run);
    const Said said =
        shell("LD_PRELOAD=" TESSERA_FAULTS " FAULT_FOLDER=" + run.string() + " FAULT_CALL=" + call +
              " FAULT_AT=" + std::to_string(at) + " FAULT_MARK=" + mark.string() + " " + program_path() +
              " train --resume " + run.string());
    CAPTURE(at);
    CAPTURE(said.err);
    const bool struck = fs::remove(mark);
    CHECK((said.code == 0 || (struck && said.code == 2)));
    if (said.code == 0) check_same_run(folder_ / "after", run);
    if (said.code == 2) check_refusal(said, run);
    check_readable(run);
    REQUIRE(tessera_program("train --resume " + run.string()).code == 0);
    check_same_run(folder_ / "after", run);
    return struck;
  }

  const fs::path& folder() const { return folder_.path(); }

  static void check_refusal(const Said& said, const fs::path& run) {
    CHECK(said.complains_of(run.string() + "/"));
    CHECK(std::count(said.err.begin(), said.err.end(), '\n') == 1);
    CHECK(said.out.find("Done") == std::string::npos);
  }

 private:
  // A checkpoint has the bytes from before, or those that an undisturbed run writes.
  void check_old_or_new(const fs::path& run) const {
    for (const char* name : {"last.safetensors", "best.safetensors", "state.safetensors"}) {
      CAPTURE(name);
      const std::string bytes = bytes_of(run / name);
      const auto is_of = [&](const char* moment) { return bytes == bytes_of(folder_ / moment / name); };
      CHECK((is_of("before") || is_of("between") || is_of("after")));
    }
    struct stat status {};
    stat((run / "last.safetensors").c_str(), &status);
    CHECK((status.st_mode & 0777) == 0600);
  }

  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a file is synced and closed before it takes its name, and its folder synced after") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run", log = folder / "log";
  const Said said = shell("LD_PRELOAD=" TESSERA_FAULTS " FAULT_FOLDER=" + run.string() +
                          " FAULT_LOG=" + log.string() + " " + program_path() + " train --out " +
                          run.string() + " --stop-after 4" + in_quotes(tiny_run(false)));
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  std::vector<std::string> calls;
  std::istringstream lines(bytes_of(log));
  for (std::string call; std::getline(lines, call);)
    if (call == "fsync" || call == "close" || call == "rename") calls.push_back(call);
  int renamed = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i] != "rename") continue;
    ++renamed;
    CAPTURE(i);
    REQUIRE((i >= 2 && i + 1 < calls.size()));
    CHECK(calls[i - 2] == "fsync");
    CHECK(calls[i - 1] == "close");
    CHECK(calls[i + 1] == "fsync");
  }
  CHECK(renamed >= 4);  // config, weights, metrics, state
}

TEST_CASE("whichever call to the disk fails, what was saved is whole and the run goes on") {
  const Faults faults;
  for (const Fault& fault : {Fault{"open", false}, Fault{"write", false}, Fault{"write", true},
                             Fault{"short", false}, Fault{"chmod", false}, Fault{"fsync", false},
                             Fault{"fsync", true}, Fault{"close", false}, Fault{"rename", false}}) {
    CAPTURE(fault.call);
    CAPTURE(fault.lasts);
    int at = 1;
    while (faults.strike(fault, at)) ++at;
    CHECK(at > 6);  // two epochs of three files and more
    MESSAGE(fault.call, ": ", at - 1, " calls");
  }
}

TEST_CASE("whichever call that reads a run fails, it ends with one error or goes on to the same end") {
  const Faults faults;
  for (const char* name : {"find", "read", "flock"}) {
    const std::string call = name;
    CAPTURE(call);
    int at = 1;
    while (faults.strike_reading(call, at)) ++at;
    CHECK(at > 1);
    MESSAGE(call, ": ", at - 1, " calls");
  }
}

TEST_CASE("a new run whose folder cannot be written to can be begun again") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run", mark = folder / "mark";
  const std::string arguments = " train --out " + run.string() + in_quotes(tiny_run(false));
  for (const std::string call : {"open", "write", "fsync", "rename", "mkdir"})
    for (const int at : {1, 2}) {
      if (call == "mkdir" && at > 1) continue;
      CAPTURE(call);
      CAPTURE(at);
      const Said said = shell("LD_PRELOAD=" TESSERA_FAULTS " FAULT_FOLDER=" + run.string() +
                              " FAULT_CALL=" + call + " FAULT_AT=" + std::to_string(at) +
                              " FAULT_MARK=" + mark.string() + " " + program_path() + arguments);
      CAPTURE(said.err);
      CHECK(said.code == 2);
      if (call == "mkdir")
        CHECK(said.complains_of(run.string() + ": the run folder cannot be made: Permission denied"));
      else
        Faults::check_refusal(said, run);
      const bool begun = fs::exists(run / "config.json");
      CHECK(tessera_program(begun ? "train --resume " + run.string() : arguments).code == 0);
      fs::remove_all(run);
    }
}

TEST_CASE("a file that may not grow any more is an error like a full disk") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  const Said said =
      shell("ulimit -f 8; " + program_path() + " train --out " + run.string() + in_quotes(tiny_run(false)));
  CAPTURE(said.err);
  CHECK(said.code == 2);
  CHECK(said.complains_of("File too large; what was there before is untouched"));
  Faults::check_refusal(said, run);
  CHECK(check_readable(run) == 0);
  CHECK(tessera_program("train --resume " + run.string()).code == 0);
}
