// What ends ranks, and what does not.

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "tests/mpi/on_ranks.h"

using namespace tessera;

namespace {

int kills_wanted() {
  const char* wanted = std::getenv("TESSERA_RANK_KILLS");
  return wanted ? std::atoi(wanted) : 3;
}

bool says_line(const Said& said, const std::string& text) { return said.err.find(text) != std::string::npos; }

std::string train_into(const std::filesystem::path& run) {
  const bool goes_on = std::filesystem::exists(run / "config.json");
  return goes_on ? "train --threads 1 --resume " + run.string()
                 : "train --threads 1 --out " + run.string() +
                       few_batches(small_vit_of_ranks + " --set checkpoint.every_steps=1", 12);
}

// Of a file that may be gone, as those of a process that ends.
std::string text_of(const std::filesystem::path& file) try {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
} catch (const std::ios_base::failure&) {
  return "";
}

// The process that computes a rank of the run in `folder`, a child of the one that mpirun has started.
std::optional<pid_t> worker(int rank, const std::string& folder) {
  std::map<pid_t, pid_t> parents;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || text_of(entry.path() / "cmdline").find(folder) == std::string::npos ||
        !text_of(entry.path() / "cmdline").starts_with(program_path()) ||
        text_of(entry.path() / "environ").find("OMPI_COMM_WORLD_RANK=" + std::to_string(rank)) ==
            std::string::npos)
      continue;
    const std::string stat = text_of(entry.path() / "stat");
    const size_t name_end = stat.rfind(')');
    if (name_end != std::string::npos) parents[pid] = std::atoi(stat.c_str() + name_end + 4);
  }
  for (const auto& [pid, parent] : parents)
    if (parents.contains(parent)) return pid;
  return std::nullopt;
}

struct Signalled {
  Said said;
  bool sent;
};

// When the run in a folder was saved last; nothing before it was.
std::optional<std::filesystem::file_time_type> saved_at(const std::filesystem::path& run) {
  std::error_code none;
  const auto time = std::filesystem::last_write_time(run / "state.safetensors", none);
  return none ? std::nullopt : std::optional(time);
}

// What is done to a rank, and when: so long after the session has saved for the first time, or has begun.
struct Strike {
  std::function<bool(pid_t)> action;  // until it is true
  int ranks = 3, rank = 0;
  std::chrono::milliseconds after{0};
  bool awaits_save = true;
  std::string arguments = "";  // empty: train_into()
};

Signalled with_strike(const Strike& strike, const std::filesystem::path& run,
                      const std::string& environment = "") {
  bool sent = false;
  std::atomic<bool> ended = false;
  std::thread sender([&, before = saved_at(run)] {
    while (!ended && strike.awaits_save && saved_at(run) == before)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(strike.after);
    while (!ended && !sent) {
      const auto pid = worker(strike.rank, run.string());
      sent = pid && strike.action(*pid);
    }
    while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it holds what it traces
  });
  const auto began = std::chrono::steady_clock::now();
  const Said said =
      on_ranks(strike.ranks, strike.arguments.empty() ? train_into(run) : strike.arguments, environment);
  ended = true;
  sender.join();
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(60));
  return {said, sent};
}

std::function<bool(pid_t)> signal_of(int number) {
  return [number](pid_t pid) { return kill(pid, number) == 0; };
}

// Stops the thread that computes, and no other one. False where the system does not let this process.
bool stop_main_thread(pid_t pid) {
  return ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 &&
         ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) == 0 && waitpid(pid, nullptr, __WALL) == pid;
}

void check_ended_by(const Said& said, const std::string& line) {
  CHECK(said.code == 2);
  const size_t at = said.err.find("error: rank");
  REQUIRE(at != std::string::npos);
  CHECK(said.err.find(line) == at);
  CHECK(said.err.find("error: rank", at + 1) == std::string::npos);
}

}  // namespace

TEST_CASE("a run that was stopped goes on with another number of ranks, with the same bytes") {
  if (!with_mpi()) return;
  const TemporaryFolder folder;
  const std::filesystem::path whole = folder / "whole", run = folder / "run";
  REQUIRE(tessera_program(train_into(whole)).code == 0);
  REQUIRE(on_ranks(3, train_into(run) + " --stop-after 2").code == 0);
  REQUIRE(on_ranks(2, train_into(run) + " --stop-after 2").code == 0);
  REQUIRE(tessera_program(train_into(run)).code == 0);
  check_same_bytes(whole, run);
}

TEST_CASE("ranks that are killed at random lose nothing: the run goes on and has the same bytes") {
  if (!with_mpi()) return;
  const TemporaryFolder folder;
  const std::filesystem::path whole = folder / "whole", run = folder / "run";
  REQUIRE(tessera_program(train_into(whole)).code == 0);
  std::mt19937 random(1);
  int killed = 0;
  for (int k = 0; k < kills_wanted(); ++k) {
    Strike strike{.action = signal_of(SIGKILL), .ranks = 2 + static_cast<int>(random() % 3)};
    strike.rank = static_cast<int>(random() % static_cast<unsigned>(strike.ranks));
    strike.after = std::chrono::milliseconds(random() % 500);
    strike.awaits_save = random() % 4 != 0;
    const auto [said, sent] = with_strike(strike, run);
    CAPTURE(said.err);
    if (said.code != 0) {
      ++killed;
      check_ended_by(said, fmt::format("error: rank {} of {} on ", strike.rank, strike.ranks));
      continue;
    }
    check_same_bytes(whole, run);
    std::filesystem::remove_all(run);
  }
  if (!std::filesystem::exists(run / "config.json")) std::filesystem::remove_all(run);
  REQUIRE(on_ranks(2, train_into(run)).code == 0);
  check_same_bytes(whole, run);
  MESSAGE(killed, " of ", kills_wanted(), " sessions were ended by a kill");
}

TEST_CASE("a run that is saved by the clock is saved on all ranks at the same step") {
  if (!with_mpi()) return;
  const TemporaryFolder folder;
  const std::filesystem::path whole = folder / "whole", run = folder / "run";
  const auto into = [](const std::filesystem::path& out) {
    return "train --threads 1 --out " + out.string() +
           few_batches(small_vit_of_ranks + " --set checkpoint.every_minutes=0.0001", 1) +
           " --set data.train_images=2400";
  };
  REQUIRE(tessera_program(into(whole)).code == 0);
  const auto [said, sent] =
      with_strike({.action = signal_of(SIGKILL), .ranks = 2, .rank = 1, .arguments = into(run)}, run);
  CAPTURE(said.err);
  REQUIRE(sent);
  check_ended_by(said, "error: rank 1 of 2 on ");
  CHECK(!std::filesystem::exists(run / "best.safetensors"));  // so it was saved within the epoch
  REQUIRE(std::filesystem::exists(run / "state.safetensors"));
  REQUIRE(on_ranks(3, "train --threads 1 --resume " + run.string()).code == 0);
  check_same_bytes(whole, run);
}

TEST_CASE("a rank that stops answering ends all within 30 seconds") {
  if (!with_mpi()) return;
  const TemporaryFolder folder;
  const auto [said, sent] = with_strike({.action = signal_of(SIGSTOP), .rank = 1}, folder / "run");
  CAPTURE(said.err);
  REQUIRE(sent);
  check_ended_by(said, "error: rank 1 of 3 on ");
  CHECK(says_line(said, "has not answered for 20 seconds"));
}

TEST_CASE("a rank that is alive but computes no more ends all") {
  if (!with_mpi()) return;
  const TemporaryFolder folder;
  bool may = true;
  const auto stop = [&](pid_t pid) { return may = stop_main_thread(pid); };
  const auto [said, sent] =
      with_strike({.action = [&](pid_t pid) { return stop(pid) || !may; }, .rank = 1}, folder / "run");
  if (!may) {
    MESSAGE("skipped: this process may not trace another one");
    return;
  }
  CAPTURE(said.err);
  REQUIRE(sent);
  check_ended_by(said, "error: rank 1 of 3 on ");
  // A thread that is stopped while it holds MPI keeps the heartbeat from speaking too.
  const bool silent = says_line(said, "has not answered for 20 seconds");
  CHECK((silent || says_line(said, "is alive, but has neither computed nor answered for 25 seconds")));
}

TEST_CASE("a rank that computes for long is waited for") {
  if (!with_mpi()) return;
  const TemporaryFolder folder;
  // One batch of two micro-batches, for which the third rank waits.
  const Said said =
      on_ranks(3,
               "train --threads 1 --out " + (folder / "run").string() +
                   " --model vit --dataset shapes --image-size 64 --epochs 1 --batch 64 --set micro_batch=32"
                   " --set data.train_images=64 --set data.validation_images=6 --set model.dim=512"
                   " --set model.depth=8",
               "TESSERA_RANK_PATIENCE=2");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const std::string events = text_of(folder / "run" / "events.jsonl"), key = "\"seconds\":";
  const size_t at = events.find(key);
  REQUIRE(at != std::string::npos);
  const double seconds = std::atof(events.c_str() + at + key.size());
  if (seconds < 3) MESSAGE("the step took ", seconds, " seconds, too few to tell");
}

TEST_CASE("a disk that is full ends all ranks with a line, and the run goes on") {
  if (!with_mpi()) return;
  const TemporaryFolder folder;
  const std::filesystem::path whole = folder / "whole", run = folder / "run", mark = folder / "mark";
  REQUIRE(tessera_program(train_into(whole)).code == 0);
  REQUIRE(on_ranks(2, train_into(run) + " --stop-after 2").code == 0);
  const std::string plain = program_path() + " " + train_into(run);
  const Said said = on_unlike_ranks(
      "env LD_PRELOAD=" TESSERA_FAULTS " FAULT_FOLDER=" + run.string() +
          " FAULT_CALL=write FAULT_AT=5 FAULT_LASTS=1 FAULT_MARK=" + mark.string() + " " + plain,
      plain, 1, true);
  CAPTURE(said.err);
  REQUIRE(std::filesystem::exists(mark));
  check_ended_by(said, "error: rank 0 of 2 on ");
  CHECK(says_line(said, "No space left on device"));
  REQUIRE(on_ranks(3, train_into(run)).code == 0);
  check_same_bytes(whole, run);
}

// Sanitizers need terabytes of addresses.
TEST_CASE("a rank that is out of memory ends all with a line" * doctest::skip(sanitized)) {
  if (!with_mpi()) return;
  const TemporaryFolder folder;
  const std::string large = program_path() + " train --threads 1 --out " + (folder / "run").string() +
                            " --dataset shapes --image-size 64 --epochs 1 --batch 8192"
                            " --set data.train_images=8192 --set data.validation_images=6"
                            " --set micro_batch=4096" +
                            small_vit_of_ranks;
  const Said said = on_unlike_ranks("prlimit --as=1100000000 " + large, large, 1, false);
  CAPTURE(said.err);
  check_ended_by(said, "error: rank 1 of 2 on ");
  CHECK(says_line(said, "memory: no "));
}

TEST_CASE("a signal to any rank saves the run of all") {
  if (!with_mpi()) return;
  const TemporaryFolder folder;
  const std::filesystem::path whole = folder / "whole", run = folder / "run";
  const auto [said, sent] = with_strike({.action = signal_of(SIGTERM), .rank = 2}, run);
  CAPTURE(said.err);
  REQUIRE(sent);
  CHECK(said.code == 143);
  CHECK(said.out.find("all is saved") != std::string::npos);
  REQUIRE(tessera_program(train_into(run)).code == 0);
  REQUIRE(tessera_program(train_into(whole)).code == 0);
  check_same_bytes(whole, run);
}
