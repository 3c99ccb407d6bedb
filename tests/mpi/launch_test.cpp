// How the processes of a launcher begin, and how the end of one is told.

#include "apps/ranks/launch.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <stop_token>
#include <thread>

#include "tests/mpi/on_ranks.h"

using namespace tessera;

namespace {

struct Watched {
  int code;
  std::string err;
};

// Removes all handlers: doctest's would speak in the child, and run_watched() leaves its own.
void reset_signals() {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1}) std::signal(number, SIG_DFL);
}

// Returns the exit code that run_watched() gives the parent, and its words.
Watched watched(const std::function<int()>& work) {
  reset_signals();
  const TemporaryFolder folder;
  const std::string file = folder / "err";
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  REQUIRE(std::freopen(file.c_str(), "w", stderr) != nullptr);
  const int code = run_watched({"mpirun", 1, 2, 0}, [&]() -> int { _exit(work()); });
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  reset_signals();
  return {code, bytes_of(file)};
}

}  // namespace

TEST_CASE("a launcher is known by its variables") {
  const auto launch_of = [](const std::vector<std::pair<const char*, const char*>>& variables) {
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    const auto launch = launch_of_environment();
    for (const auto& [name, value] : variables) unsetenv(name);
    return launch;
  };
  const auto check_launch = [](const std::optional<Launch>& launch, const std::string& by, int rank, int size,
                               int local_rank) {
    REQUIRE(launch.has_value());
    CHECK(launch->by == by);
    CHECK(launch->rank == rank);
    CHECK(launch->size == size);
    CHECK(launch->local_rank == local_rank);
  };
  check_launch(launch_of({{"SLURM_STEP_ID", "0"},
                          {"SLURM_NTASKS", "8"},
                          {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_PROCID", "3"},
                          {"SLURM_LOCALID", "1"}}),
               "srun", 3, 4, 1);
  check_launch(launch_of({{"WORLD_SIZE", "4"}, {"RANK", "2"}, {"LOCAL_RANK", "0"}}), "torchrun", 2, 4, 0);
  check_launch(launch_of({{"OMPI_COMM_WORLD_SIZE", "2"},
                          {"OMPI_COMM_WORLD_RANK", "1"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                          {"SLURM_STEP_NUM_TASKS", "1"},
                          {"SLURM_PROCID", "0"}}),
               "mpirun", 1, 2, 1);
  // One process: of a batch script with room for eight tasks, and those of no sense.
  CHECK(!launch_of({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}}));
  CHECK(!launch_of({{"WORLD_SIZE", "1"}, {"RANK", "0"}}));
  CHECK(!launch_of({{"WORLD_SIZE", "4"}, {"RANK", "4"}}));
  CHECK(!launch_of({{"WORLD_SIZE", "four"}, {"RANK", "0"}}));
}

TEST_CASE("a rank takes the GPU of its number on its machine") {
  CHECK(gpu_of(0, "", 4) == "0");
  CHECK(gpu_of(3, "", 4) == "3");
  CHECK(gpu_of(5, "", 4) == "1");
  CHECK(gpu_of(1, "2,GPU-7f", 4) == "GPU-7f");
  CHECK(gpu_of(2, "2,GPU-7f", 4) == "2");
  CHECK(gpu_of(1, "", 0) == "");
}

TEST_CASE("a rank that a signal has ended is named, but not where the launcher ends those that are left") {
  CHECK(watched([] { return 3; }).code == 3);
  for (const int number : {SIGTERM, SIGKILL, SIGHUP}) {
    CAPTURE(number);
    const Watched by_somebody = watched([=] { return std::raise(number); });
    CHECK(by_somebody.code == 2);
    CHECK(by_somebody.err.starts_with("error: rank 1 of 2 on "));
    CHECK(by_somebody.err.find("was ended by signal " + std::to_string(number)) != std::string::npos);
  }
  const Watched by_launcher = watched([] {
    kill(getppid(), SIGTERM);  // which passes it on
    for (;;) pause();
    return 0;
  });
  CHECK(by_launcher.code == 2);
  CHECK(by_launcher.err == "");
}

// The thread sanitizer keeps a signal that arrives just before waitpid() until that returns.
TEST_CASE("a signal that arrives while a rank is forked reaches it, whichever thread it arrives in" *
          doctest::skip(sanitized)) {
  const std::jthread other([](const std::stop_token& ends) {  // which holds no signal back
    while (!ends.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  for (int i = 0; i < 100; ++i) {
    const Watched told = watched([] {
      kill(getppid(), SIGTERM);
      for (;;) pause();
      return 0;
    });
    REQUIRE(told.code == 2);
    REQUIRE(told.err == "");
  }
}

TEST_CASE("the patience of ranks is a number of seconds") {
  CHECK(rank_patience() == std::chrono::seconds(25));
  setenv("TESSERA_RANK_PATIENCE", "7", 1);
  CHECK(rank_patience() == std::chrono::seconds(7));
  setenv("TESSERA_RANK_PATIENCE", "-7", 1);
  CHECK(rank_patience() == std::chrono::seconds(25));
  unsetenv("TESSERA_RANK_PATIENCE");
}

TEST_CASE("processes that no MPI joins do not train the same run twice") {
  const TemporaryFolder folder;
  for (const auto& [variables, launcher] :
       {std::pair("WORLD_SIZE=2 RANK=0", "torchrun"), {"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0", "srun"}}) {
    const Said said = tessera_program(
        "train --out " + (folder / "run").string() + few_batches(small_vit_of_ranks), variables);
    CHECK(said.code == 2);
    CHECK(said.err.find(std::string(launcher) + " started 2 processes") != std::string::npos);
    CHECK(!std::filesystem::exists(folder / "run"));
  }
}
