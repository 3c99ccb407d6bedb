#include "engine/cuda/launch.h"

#include <mutex>
#include <unordered_map>

#include "engine/core/error.h"

namespace tessera {

void allow_shared(const void* kernel, size_t bytes) {
  check(bytes <= static_cast<size_t>(gpu().shared_bytes), "kernel: ", bytes,
        " bytes of shared memory a block", " are wanted, this GPU has ", gpu().shared_bytes,
        "; try narrower heads or --precision bf16");
  static std::mutex mutex;
  static std::unordered_map<const void*, size_t>& allowed = *new std::unordered_map<const void*, size_t>;
  const std::lock_guard lock(mutex);
  size_t& most = allowed[kernel];
  if (bytes <= most) return;
  expect(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
         "kernel");
  most = bytes;
}

}  // namespace tessera
