#pragma once

#include <string>

#include "tests/commands/program.h"
#include "tests/mpi/mpirun_watch.h"
#include "tests/sanitized.h"

namespace tessera {

inline bool with_mpi() {
#ifdef TESSERA_HAS_MPI
  const bool can = std::system("command -v mpirun >/dev/null") == 0;
#else
  const bool can = false;
#endif
  if (!can) MESSAGE("skipped: this program was built without MPI, or there is no mpirun");
  return can;
}

// Starts ranks, and ends those that hang. Sanitized ranks take several times as long.
inline std::string start_ranks(const std::string& pid_file) {
  return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout --kill-after=10 " +
         std::string(sanitized ? "600" : "120") + " mpirun --oversubscribe --report-pid " + pid_file;
}

// Runs the program on so many ranks, without an input, which mpirun would pass on.
inline Said on_ranks(int ranks, const std::string& arguments, const std::string& before = "") {
  const TemporaryFolder folder;
  const std::string pid_file = folder / "pid";
  MpirunWatch watch(pid_file);
  Said said = tessera_program(arguments + " </dev/null",
                              before + " " + start_ranks(pid_file) + " -n " + std::to_string(ranks));
  said.code = watch.code_of_ranks().value_or(said.code);
  return said;
}

// One rank is started by the first command line, the others by the second.
inline Said on_unlike_ranks(const std::string& first, const std::string& second, int others,
                            bool first_is_rank_0) {
  const std::string of_first = " -n 1 " + first, of_others = " -n " + std::to_string(others) + " " + second;
  const std::string all = first_is_rank_0 ? of_first + " :" + of_others : of_others + " :" + of_first;
  const TemporaryFolder folder;
  const std::string err = folder / "err", pid_file = folder / "pid";
  MpirunWatch watch(pid_file);
  const int status = std::system((start_ranks(pid_file) + all + " </dev/null >/dev/null 2>" + err).c_str());
  return {watch.code_of_ranks().value_or(WIFEXITED(status) ? WEXITSTATUS(status) : -1), "", bytes_of(err)};
}

// Weights, moments, average and metrics have the same bytes.
inline void check_same_bytes(const std::filesystem::path& a, const std::filesystem::path& b) {
  for (const char* name :
       {"config.json", "metrics.csv", "last.safetensors", "best.safetensors", "state.safetensors"}) {
    CAPTURE(name);
    REQUIRE(std::filesystem::exists(a / name));
    CHECK(bytes_of(a / name) == bytes_of(b / name));
  }
}

// Epochs of 3 steps of 4 micro-batches on shapes of 16 pixels: the arguments of tessera train but for --out.
inline std::string few_batches(const std::string& model, int epochs = 2) {
  const auto unless_given = [&](const std::string& option, const std::string& value) {
    return model.find(option) == std::string::npos ? " " + option + " " + value : "";
  };
  return unless_given("--dataset", "shapes") + unless_given("--image-size", "16") + " --epochs " +
         std::to_string(epochs) +
         " --batch 8 --set data.train_images=24 --set data.validation_images=6 --set micro_batch=2"
         " --set ema=0.9 --set schedule.warmup_epochs=1" +
         model;
}

inline const std::string small_vit_of_ranks =
    " --model vit --set model.dim=8 --set model.depth=1 --set model.drop_path=0.3"
    " --set 'model.attention={\"heads\":2,\"head_dim\":4}'";

}  // namespace tessera
