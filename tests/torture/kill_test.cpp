// kill -9 at random moments. TESSERA_KILLS says how often; a thousand take some minutes.

#include <doctest/doctest.h>

#include <chrono>
#include <random>
#include <thread>

#include "tests/commands/running.h"
#include "tests/torture/tortured_run.h"

namespace fs = std::filesystem;
using namespace tessera;

namespace {

int kills_wanted() {
  const char* wanted = std::getenv("TESSERA_KILLS");
  return wanted ? std::atoi(wanted) : 15;
}

// What one session after another, each killed, makes of the run in `run`.
class Victim {
 public:
  Victim(const TemporaryFolder& folder, const fs::path& run) : folder_(folder), run_(run) {}

  // One session, for so long; whether it was killed before its end. A resumed one may have other threads.
  bool session(std::chrono::microseconds time, int threads) const {
    std::vector<std::string> words{"train", fs::exists(run_ / "config.json") ? "--resume" : "--out", run_};
    if (words[1] == "--out")
      for (const std::string& word : tiny_run(true)) words.push_back(word);
    else
      words.insert(words.end(), {"--threads", std::to_string(threads)});
    const Running program(folder_, words);
    std::this_thread::sleep_for(time);
    program.send(SIGKILL);
    const Said said = program.wait();
    CAPTURE(said.err);
    CHECK(said.err.empty());
    CHECK((said.code == -1 || said.code == 0));
    return said.code == -1;
  }

 private:
  const TemporaryFolder& folder_;
  fs::path run_;
};

}  // namespace

TEST_CASE("a run that is killed again and again loses nothing and ends as if it had not been") {
  const TemporaryFolder folder;
  const fs::path whole = folder / "whole", run = folder / "run";
  const auto began = std::chrono::steady_clock::now();
  REQUIRE(tessera_program("train --out " + whole.string() + in_quotes(tiny_run(true))).code == 0);
  const std::chrono::duration<double, std::micro> a_run = std::chrono::steady_clock::now() - began;

  std::mt19937 random(1);
  std::uniform_real_distribution<double> moment(0, 0.7 * a_run.count());
  const Victim victim(folder, run);
  int kills = 0, finished = 0, half_written = 0, sessions = 0, moved = 0;
  while (kills < kills_wanted()) {
    const bool resumed = fs::exists(run / "config.json");
    const int threads = ++sessions % 5 == 0 ? 2 + sessions % 3 : 1;
    if (victim.session(std::chrono::microseconds(static_cast<int64_t>(moment(random))), threads)) {
      ++kills;
      moved += resumed && threads > 1;
      if (fs::exists(run)) half_written += check_readable(run) > 0;
      continue;
    }
    check_same_run(whole, run);
    fs::remove_all(run);
    ++finished;
  }
  if (!fs::exists(run / "config.json")) fs::remove_all(run);
  const std::string last = fs::exists(run) ? "train --resume " + run.string()
                                           : "train --out " + run.string() + in_quotes(tiny_run(true));
  REQUIRE(tessera_program(last).code == 0);
  check_same_run(whole, run);
  MESSAGE(kills, " kills, ", moved, " of sessions with another number of threads, ", half_written,
          " of them while a file was written; ", finished + 1, " runs finished, all with the same bytes");
}
