#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace tessera {

// The main stream, on which all kernels and copies run in the order of the calls, or this thread's side
// stream (side_stream.h). Its first use makes the device ready. Fails, saying what to do, if there is no GPU,
// the driver is too old for this build, or the GPU is older than compute capability 8.0.
cudaStream_t stream();

// Properties of the GPU that decide how kernels are cut and launched.
struct Gpu {
  int multiprocessors;
  int shared_bytes;  // the most dynamic shared memory that a block may request
  bool branches;     // whether parts of an op may run side by side (Branch)
  bool early;        // whether a kernel may be launched while the previous one ends, see may_start_early()
  bool one_by_one;   // whether the host waits for each kernel
};
// A person looking for a fault sets TESSERA_BRANCHES=0, TESSERA_EARLY=0, or TESSERA_OVERLAP=0 for both, and
// TESSERA_SYNC=1, after which an error names the kernel that made it.
const Gpu& gpu();

// Whether this thread's next kernel may be launched while the previous one ends: the GPU must be able to, its
// code of the kernels must wait (wait_for_previous_kernel()), and forbid_early_start() must not have been
// called since the last kernel. Call it exactly once for each kernel.
bool may_start_early();

// Says that the next kernel follows a copy or another stream's work rather than a kernel of its own stream.
// It must not start early then, because a graph has such an edge between two kernels only.
void forbid_early_start();

// Whether this GPU's code of the kernels waits in wait_for_previous_kernel(). Code that the driver has
// compiled from older PTX does not.
bool kernels_wait_for_previous();

// Waits for the kernel that was launched last, unless it was captured. Fails, naming it, if it has failed.
void wait_for_kernel(const void* kernel);

// Allows a kernel at least this much dynamic shared memory from now on. A larger allowance from before stays,
// because a graph may hold launches that need it. Fails for more than the GPU has.
void allow_shared(const void* kernel, size_t bytes);

// Fails with `what` and the runtime's message unless status is cudaSuccess.
void expect(cudaError_t status, const char* what);

// Waits for all work on stream(). Fails if a kernel that ran earlier has failed.
void synchronize();

}  // namespace tessera
