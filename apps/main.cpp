// tessera: train, evaluate, explain and measure vision transformers from the command line.

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>

#include "apps/commands/commands.h"
#include "apps/options/complaint.h"
#include "apps/options/options.h"
#include "apps/ranks/launch.h"

namespace {

std::atomic<bool> memory_ran_out{false};

void note_no_memory() {
  memory_ran_out = true;
  throw std::bad_alloc();
}

// A library's destructor that wants memory and gets none cannot be unwound: the JSON library's is one. What
// is on the disk is whole at any moment, so the program ends as it does for every other error.
[[noreturn]] void end_without_memory() {
  if (!memory_ran_out) std::abort();
  constexpr char message[] = "tessera: out of memory\n";
  const auto written = write(STDERR_FILENO, message, sizeof message - 1);
  _exit(written < 0 ? 2 : static_cast<int>(tessera::ExitCode::bad_usage));
}

int run(int argc, char** argv) {
  std::set_new_handler(note_no_memory);
  std::set_terminate(end_without_memory);
  tessera::Command app("A deep-learning engine for vision transformers that learn from small datasets.",
                       "tessera");
#define TESSERA_ADD(name) tessera::add_##name(app);
  TESSERA_COMMANDS(TESSERA_ADD)
#undef TESSERA_ADD
  return tessera::run_program(app, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<tessera::Launch> launch = tessera::launch_of_environment();
  const std::string command = argc > 1 ? argv[1] : "";
  if (!launch) return run(argc, argv);
  if (launch->rank > 0 && !std::freopen("/dev/null", "w", stdout)) return 2;
  if (launch->rank > 0)
    tessera::let_others_complain_first();
  else
    tessera::write_as_launcher_does();
  const bool shared = command == "train" || command == "eval" ||
                      (command == "bench" && argc > 2 && argv[2] == std::string("scale"));
  if (shared) tessera::take_own_gpu(*launch);
  if (shared) return tessera::run_watched(*launch, [&] { return run(argc, argv); });
  return tessera::leaves_to_first(*launch, command) ? 0 : run(argc, argv);
}
