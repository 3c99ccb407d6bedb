#include "engine/core/memory.h"

#include "engine/core/device.h"
#include "engine/core/error.h"
#include "engine/cuda/graph.h"
#include "engine/cuda/stream.h"

namespace tessera {

template <> void* Memory<Cuda>::allocate(size_t bytes) {
  stream();  // the device is ready, or says why not
  void* block = nullptr;
  const cudaError_t status = cudaMalloc(&block, bytes);
  if (status == cudaSuccess) return block;
  cudaGetLastError();
  if (status != cudaErrorMemoryAllocation) expect(status, "memory");
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  fail("memory: no ", bytes, " bytes left on the GPU, ", free, " of ", total,
       " are free; try a smaller batch, --precision bf16 or --device cpu");
}

template <> void Memory<Cuda>::release(void* block, size_t) { expect(cudaFree(block), "memory"); }

template <> void Memory<Cuda>::zero(void* to, size_t bytes) {
  const cudaStream_t on = stream();  // makes the device ready, even for no bytes
  if (bytes == 0) return;
  expect(cudaMemsetAsync(to, 0, bytes, on), "zero");
  forbid_early_start();
}

template <> void Memory<Cuda>::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  expect(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()), "copy");
  forbid_early_start();
}

template <> void Memory<Cuda>::to_host(void* to, const void* from, size_t bytes) {
  check(!Graph::capturing(), "graph: a step that reads numbers back to the host cannot be captured; use ",
        "--no-graph");
  expect(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream()), "copy to the host");
  forbid_early_start();
  synchronize();
}

// What the host holds may change as soon as this returns. Within a capture the numbers are constants of the
// graph: they go there now, once for all replays.
template <> void Memory<Cuda>::from_host(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  if (Graph::capturing()) return Graph::copy_constant(to, from, bytes);
  upload(to, from, bytes);
}

}  // namespace tessera
