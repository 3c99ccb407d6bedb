#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace tessera {

// The one stream on which all kernels and copies run, in the order of the calls; but for those of a thread
// that is on a stream of its own (side_stream.h). Its first use makes the
// device ready, and fails with the way on where there is no GPU, the driver is too old for this build, or the
// GPU is older than compute capability 8.0.
cudaStream_t stream();

// What kernels are cut by.
struct Gpu {
  int multiprocessors;
  int shared_bytes;  // of dynamic shared memory that a block may ask for
  bool overlaps;     // whether kernels may overlap: TESSERA_OVERLAP is not 0
  bool early;        // whether one may be brought up while the one before it ends, see may_start_early()
};
const Gpu& gpu();

// Whether this thread's next kernel may be brought up while the one before it ends: where the GPU can do that
// and its code of the kernels waits (wait_for_previous_kernel()); not after forbid_early_start(). To be asked
// once a kernel.
bool may_start_early();

// This thread's next kernel follows on what is no kernel of its stream: another stream's work, or a copy,
// beside which a graph has no such edge.
void forbid_early_start();

// Whether the code that this GPU has of the kernels is of those that wait in wait_for_previous_kernel(): code
// that the driver made of older PTX is not.
bool kernels_wait_for_previous();

// Lets a kernel have so much dynamic shared memory from now on, or more: what was allowed before stays, for
// launches that a graph holds. Fails for more than the GPU has.
void allow_shared(const void* kernel, size_t bytes);

// Fails with `what` and the runtime's own words unless status is cudaSuccess.
void expect(cudaError_t status, const char* what);

// Waits for all work on the stream; an error of a kernel that ran earlier shows here.
void synchronize();

}  // namespace tessera
