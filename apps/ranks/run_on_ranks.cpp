#include "apps/ranks/run_on_ranks.h"

#include <sched.h>
#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>

#include "apps/ranks/launch.h"
#include "apps/ranks/mpi_ranks.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/core/printable.h"

namespace tessera {

namespace {

// This machine's name and the processors that this process may run on.
std::string cores_of_process() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  std::string text = std::string(host) + ":";
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &cores)) text += " " + std::to_string(i);
  return text;
}

void share_cores(Ranks& ranks, bool threads_given) {
  const std::string own = cores_of_process();
  const std::vector<std::string> all = gather(ranks, own);
  const auto sharing = static_cast<int>(std::count(all.begin(), all.end(), own));
  const auto cores = static_cast<int>(std::count(own.begin(), own.end(), ' '));
  if (!threads_given) set_threads(std::max(1, cores / sharing));
  const bool crowded = threads() * sharing > cores;
  if (crowded && ranks.is_first())
    fmt::print(stderr, "warning: {} ranks with {} threads each share {} cores; {} is faster\n", sharing,
               threads(), cores,
               sharing > cores ? "a rank a core" : fmt::format("--threads {}", cores / sharing));
}

// The first rank speaks at once, and ends all; another one speaks if the first has nothing to say.
[[noreturn]] void end_all(const Launch& launch, const std::string& why) {
  std::fflush(stdout);
  if (launch.rank > 0) std::this_thread::sleep_for(std::chrono::seconds(2));
  fmt::print(stderr, "error: {}: {}\n", name_of(launch), printable(why));
  std::fflush(stderr);
  _exit(static_cast<int>(ExitCode::bad_usage));
}

// MPI waits without end for a process that never joins, as one that runs another command.
std::unique_ptr<Ranks> join(const Launch& launch) {
  std::mutex mutex;
  std::condition_variable_any ended;
  const std::jthread watch([&](const std::stop_token& joined) {
    std::unique_lock lock(mutex);
    ended.wait_for(lock, joined, rank_patience(), [] { return false; });
    if (!joined.stop_requested())
      end_all(launch, fmt::format("waited {} seconds for the other ranks to join; {} must start this command "
                                  "on all of them (TESSERA_RANK_PATIENCE=SECONDS waits longer)",
                                  rank_patience().count(), launch.by));
  });
  return start_mpi();
}

std::string why_not_joined(const Launch& launch) {
  return has_mpi() ? fmt::format(
                         "{} started {} processes that MPI does not join, so each would compute the whole; "
                         "start them by mpirun, or by srun --mpi=pmix",
                         launch.by, launch.size)
                   : fmt::format(
                         "{} started {} processes, but this tessera was built without MPI and runs "
                         "alone; start one, or build it where libopenmpi-dev is installed",
                         launch.by, launch.size);
}

}  // namespace

ExitCode run_on_ranks(bool threads_given, const std::function<ExitCode(Ranks*)>& work) {
  const std::optional<Launch> launch = launch_of_environment();
  if (!launch) return work(nullptr);
  std::unique_ptr<Ranks> ranks;  // outlives an error: its end waits for the other ranks
  try {
    ranks = join(*launch);
    if (!ranks) end_all(*launch, why_not_joined(*launch));
    share_cores(*ranks, threads_given);
    const ExitCode code = work(ranks.get());
    std::fflush(stdout);
    return code;
  } catch (const std::bad_alloc&) {
    end_all(*launch, "out of memory");
  } catch (const std::exception& error) {
    end_all(*launch, error.what());
  }
}

std::string describe_ranks(Ranks& ranks, const Trainer& trainer, int64_t batch) {
  const int64_t size = trainer.micro_batch() > 0 ? trainer.micro_batch() : batch;
  const int64_t parts = (batch + size - 1) / size;
  std::string text =
      fmt::format("{} of one run, {} of them on this machine", ranks.size(), ranks.local_size());
  if (parts < ranks.size())
    text += fmt::format(
        "; a batch of {} has {} micro-batches of {}, so {} ranks add nothing (--set "
        "micro_batch={} gives each one, with other bits)",
        batch, parts, size, parts == 1 ? ranks.size() - 1 : ranks.size() - parts,
        std::max<int64_t>(1, batch / ranks.size()));
  return text;
}

}  // namespace tessera
