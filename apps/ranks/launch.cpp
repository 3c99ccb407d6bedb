#include "apps/ranks/launch.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <vector>

namespace tessera {

namespace {

std::optional<int> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  int number = 0;
  if (!text) return std::nullopt;
  const char* end = text + std::strlen(text);
  return std::from_chars(text, end, number).ptr == end ? std::optional(number) : std::nullopt;
}

constexpr std::array passed_on{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};

// A signal handler may use atomics that take no lock.
std::atomic<pid_t> child = 0;      // 0 while there is none
std::atomic<uint32_t> unsent = 0;  // signals that wait for the child, a bit for each number
std::atomic<bool> was_told_to_end = false;
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

void send_to_child() {
  const pid_t to = child;
  if (to == 0) return;
  const uint32_t numbers = unsent.exchange(0);
  for (const int number : passed_on)
    if (numbers & (1u << number)) kill(to, number);
}

extern "C" void pass_on(int number) {
  if (number == SIGTERM) was_told_to_end = true;
  unsent |= 1u << number;
  send_to_child();
}

// Actions are what the process did with each signal before it was passed on.
using Actions = std::array<struct sigaction, passed_on.size()>;

// Gives the signals to pass_on(), and returns the actions from before.
Actions pass_signals_on() {
  child = 0, unsent = 0, was_told_to_end = false;
  // The flags lack SA_RESTART: waitpid() must return for the thread sanitizer to handle a signal.
  struct sigaction action {};
  action.sa_handler = pass_on;
  sigemptyset(&action.sa_mask);
  Actions before;
  for (size_t i = 0; i < before.size(); ++i) sigaction(passed_on[i], &action, &before[i]);
  return before;
}

// Forks. Signals are passed on to the child, whichever thread of this process they arrive in and however
// early, because the handler is there before the child. This thread, the only one that the child keeps, holds
// them back until the child has the actions from before.
pid_t fork_with_signals() {
  sigset_t held, mask;
  sigemptyset(&held);
  for (const int number : passed_on) sigaddset(&held, number);
  pthread_sigmask(SIG_BLOCK, &held, &mask);
  const Actions before = pass_signals_on();
  const pid_t pid = fork();
  if (pid <= 0)
    for (size_t i = 0; i < before.size(); ++i) sigaction(passed_on[i], &before[i], nullptr);
  else
    child = pid;
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  send_to_child();
  return pid;
}

}  // namespace

std::optional<Launch> launch_of_environment() {
  struct Launcher {
    const char *by, *size, *rank, *local_rank;
  };
  constexpr std::array<Launcher, 4> launchers{
      {{"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"},
       {"mpirun", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID"},
       {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"},
       {"torchrun", "WORLD_SIZE", "RANK", "LOCAL_RANK"}}};
  for (const auto& [by, size_in, rank_in, local_in] : launchers) {
    const auto size = number_in(size_in), rank = number_in(rank_in);
    if (size && rank && *size > 1 && *rank >= 0 && *rank < *size)
      return Launch{by, *rank, *size, std::max(0, number_in(local_in).value_or(0))};
  }
  return std::nullopt;
}

std::string gpu_of(int local_rank, const std::string& visible, int gpus) {
  std::vector<std::string> names;
  for (size_t at = 0; at < visible.size();) {
    const size_t end = std::min(visible.find(',', at), visible.size());
    if (end > at) names.push_back(visible.substr(at, end - at));
    at = end + 1;
  }
  for (int i = 0; i < gpus && visible.empty(); ++i) names.push_back(std::to_string(i));
  return names.empty() ? "" : names[static_cast<size_t>(local_rank) % names.size()];
}

void take_own_gpu(const Launch& launch) {
  std::error_code none;  // on a machine without NVIDIA's driver
  const std::filesystem::directory_iterator gpus("/proc/driver/nvidia/gpus", none);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string own = gpu_of(launch.local_rank, visible ? visible : "",
                                 static_cast<int>(std::distance(begin(gpus), end(gpus))));
  if (!own.empty()) setenv("CUDA_VISIBLE_DEVICES", own.c_str(), 1);
}

std::string name_of(const Launch& launch) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return fmt::format("rank {} of {} on {}", launch.rank, launch.size, host);
}

bool leaves_to_first(const Launch& launch, const std::string& command) {
  const bool named = !command.empty() && command.front() != '-';
  if (launch.rank == 0)
    fmt::print(stderr, "note: {} computes in one process; of {} that {} started the others end\n",
               named ? "tessera " + command : "this", launch.size, launch.by);
  return launch.rank != 0;
}

std::chrono::seconds rank_patience() {
  const int seconds = number_in("TESSERA_RANK_PATIENCE").value_or(0);
  return std::chrono::seconds(seconds > 0 ? seconds : 25);
}

void write_as_launcher_does() {
  std::error_code none;  // of a launcher on another machine, or of another user, nothing is known
  const std::string to =
      std::filesystem::read_symlink(fmt::format("/proc/{}/fd/1", getppid()), none).string();
  const bool to_terminal = to.starts_with("/dev/pts/") || to.starts_with("/dev/tty");
  if (!to.empty() && !to_terminal) setenv("TERM", "dumb", 1);
}

int run_watched(const Launch& launch, const std::function<int()>& work) {
  const pid_t parent = getpid(), pid = fork_with_signals();
  if (pid < 0) return work();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(2);  // it ended before the line above
    return work();
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int by = WTERMSIG(status);
  if (by != SIGTERM || !was_told_to_end)  // a launcher tells the ranks that are left
    fmt::print(stderr, "error: {} was ended by signal {} ({}{}); so all ranks end\n", name_of(launch), by,
               strsignal(by), by == SIGKILL ? ", as when memory runs out" : "");
  return 2;
}

}  // namespace tessera
