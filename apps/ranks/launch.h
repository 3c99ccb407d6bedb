#pragma once

// How a launcher of several processes started this one, by the variables that it sets.

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace tessera {

struct Launch {
  std::string by;  ///< "mpirun", "srun", "torchrun"
  int rank = 0, size = 1;
  int local_rank = 0;  ///< among those of this machine
};

/// Of mpirun (Open MPI, MPICH and their kin), srun and torchrun. Nothing where one process was started.
std::optional<Launch> launch_of_environment();

/// "rank 2 of 4 on HOST"
std::string name_of(const Launch& launch);

/// The GPU of a rank: number `local_rank` of those that `visible` lists, as CUDA_VISIBLE_DEVICES does, or,
/// where it lists none, of the machine's `gpus`; in turn where there are fewer GPUs than ranks. Empty for a
/// machine without a GPU.
std::string gpu_of(int local_rank, const std::string& visible, int gpus);

/// Leaves this process the one GPU that is its own, by CUDA_VISIBLE_DEVICES. Call it before CUDA is used.
void take_own_gpu(const Launch& launch);

/// For a command that computes in one process: whether this one is to leave it to the first rank, which says
/// so on stderr.
bool leaves_to_first(const Launch& launch, const std::string& command);

/// mpirun gives the first rank a terminal of its own even where mpirun writes into a file. There this sets
/// TERM=dumb, so that the rank writes lines as into a file. Call it in the process that was launched.
void write_as_launcher_does();

/// Runs `work` in a child process, passes signals on to it and returns its exit code. Where a signal has
/// ended it (as SIGKILL does when memory runs out), a line on stderr names rank, host and signal, and the
/// code is 2. A SIGTERM that this process was sent itself is the launcher's, and needs no line.
int run_watched(const Launch& launch, const std::function<int()>& work);

/// How long ranks wait for one that does nothing, or does not join them: 25 seconds, or the
/// TESSERA_RANK_PATIENCE seconds of the environment.
std::chrono::seconds rank_patience();

}  // namespace tessera
