#pragma once

// Runs the kernels of engine/**/*.cu on the CPU, for machines without a GPU. The host's compiler compiles
// them, and each CUDA thread is a fiber that stops at barriers and at exchanges within its warp. This finds
// wrong indices, formulas, barriers, captures, misaligned rows, and streams that do not wait for each other
// (streams.h). It says nothing about speed or about the rounding of the GPU's own instructions. It finds
// races within a kernel where one of four orders of its threads shows them (fibers.h), or under the thread
// sanitizer (sanitizing.h). New memory is filled with NaN bytes. Only what the backend calls is here. cmake
// -DTESSERA_CUDA=EMULATED builds with it.

#include <fibers.h>
#include <streams.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

namespace emulator {

inline std::map<const void*, size_t> shared_limits;  // of kernels that have requested more than 48 KB
inline void expect_aligned(const void* place, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(place) % bytes != 0) refuse("an access of several numbers is not aligned");
}
inline bool fits_shared(const void* kernel, size_t bytes) {
  const auto found = shared_limits.find(kernel);
  return bytes <= (found == shared_limits.end() ? size_t{48} << 10 : found->second);
}

}  // namespace emulator

// --- within kernels ---

inline void __syncthreads() { emulator::wait_for_all(); }
inline void __syncwarp() { emulator::wait_for_warp(); }
template <class T> T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  const int base = emulator::lane() / width * width;
  return emulator::exchange(mask, value, base + (from & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int = 32) {
  return emulator::exchange(mask, value, emulator::lane() ^ bits);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  unsigned votes = 0;
  for (int i = 0; i < 32; ++i) {
    if (!(mask >> i & 1u)) continue;
    if (emulator::exchange(mask, predicate != 0, i)) votes |= 1u << i;
  }
  return votes;
}
inline int atomicAdd(int* to, int value) { return __atomic_fetch_add(to, value, __ATOMIC_RELAXED); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
template <class T> constexpr T min(T a, T b) { return b < a ? b : a; }

// --- the runtime ---

enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorMemoryAllocation,
  cudaErrorInsufficientDriver,
  cudaErrorNoDevice
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaDeviceAttr {
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrComputeCapabilityMinor,
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrMaxSharedMemoryPerBlockOptin
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed };
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;
using cudaStream_t = emulator::Stream*;
using cudaEvent_t = emulator::Event*;
using cudaGraph_t = emulator::Captured*;
using cudaGraphExec_t = emulator::Captured*;
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};
struct cudaFuncAttributes {
  int ptxVersion;
  size_t sharedSizeBytes;
};

inline const char* cudaGetErrorName(cudaError_t) { return "emulated"; }
inline const char* cudaGetErrorString(cudaError_t) { return "an error of the emulator"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  constexpr int values[] = {9, 0, 2, 227 << 10};
  return *value = values[attribute], cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return *free = *total = size_t{1} << 30, cudaSuccess;
}
inline cudaError_t cudaMalloc(void** block, size_t bytes) {
  *block = emulator::aligned(256, bytes);
  if (*block == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*block, 0xff, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMallocHost(void** block, size_t bytes) {
  const cudaError_t status = cudaMalloc(block, bytes);
  const std::lock_guard lock(emulator::running);
  if (status == cudaSuccess) emulator::pinned[static_cast<const char*>(*block)] = bytes;
  return status;
}
// CUDA frees memory after all work that was begun.
inline cudaError_t cudaFree(void* block) {
  const std::lock_guard lock(emulator::running);
  emulator::run_all();
  return std::free(block), cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const std::lock_guard lock(emulator::running);
  emulator::streams.insert(*stream = new emulator::Stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(emulator::running);
  stream->run();
  emulator::streams.erase(stream);
  return delete stream, cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(emulator::running);
  stream->follows = false;
  if (!event->captured) {
    if (stream->captured && event->mark)
      emulator::refuse("a captured stream waits for work that is not captured");
    if (event->mark) stream->queue.push_back({.work = {}, .wait = event->mark});
    return cudaSuccess;
  }
  auto& forks = event->captured->forks;
  if (!stream->captured) {  // forks off the capture
    stream->captured = event->captured;
    stream->forked = true;
    forks.push_back(stream);
  } else if (event->stream != stream) {  // joins it
    stream->captured->items.push_back({emulator::Captured::Kind::join, nullptr});
    std::erase(forks, event->stream);
    event->stream->captured = nullptr;
    event->stream->forked = false;
  }
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(emulator::running);
  if (stream->captured) emulator::refuse("the host waits for a stream that is being captured");
  return emulator::wait_on_host(stream, nullptr), cudaSuccess;
}
struct cudaDeviceProp {
  char name[256] = "emulator";
};
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  return *properties = {}, cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = new emulator::Event, cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return *milliseconds = std::chrono::duration<float, std::milli>(to->mark->time - from->mark->time).count(),
         cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* block) {
  const std::lock_guard lock(emulator::running);
  emulator::run_all();
  emulator::pinned.erase(static_cast<const char*>(block));
  return std::free(block), cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(emulator::running);
  *event = {std::make_shared<emulator::Mark>(stream), stream, stream->captured};
  if (!stream->captured) stream->queue.push_back({.work = {}, .mark = event->mark});
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(emulator::running);
  if (event->captured) emulator::refuse("the host waits for an event of a capture");
  if (event->mark && !event->mark->reached) emulator::wait_on_host(event->stream, event->mark.get());
  return cudaSuccess;
}
// Memory of the host that is not pinned is read at once, and written before the call returns.
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  const std::lock_guard lock(emulator::running);
  if (kind == cudaMemcpyHostToDevice && !emulator::is_pinned(from)) {
    const char* first = static_cast<const char*>(from);
    const auto kept = std::make_shared<std::vector<char>>(first, first + bytes);
    return stream->take([=] { std::memcpy(to, kept->data(), bytes); }, false), cudaSuccess;
  }
  stream->take([=] { std::memmove(to, from, bytes); }, false);
  if (kind == cudaMemcpyDeviceToHost && !emulator::is_pinned(to) && !stream->captured)
    emulator::wait_on_host(stream, nullptr);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return stream->take([=] { std::memset(to, value, bytes); }, false), cudaSuccess;
}
inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard lock(emulator::running);
  stream->follows = false;
  return stream->captured = new emulator::Captured, cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = std::exchange(stream->captured, nullptr);
  if ((*graph)->forks.empty()) return cudaSuccess;
  for (emulator::Stream* fork : (*graph)->forks) {
    fork->captured = nullptr;
    fork->forked = false;
  }
  return delete *graph, *graph = nullptr, cudaErrorInvalidValue;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long) {
  return *ready = new emulator::Captured(*graph), cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return delete graph, cudaSuccess; }
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  // The graph may be destroyed before its work runs, which CUDA allows.
  stream->take([kept = std::make_shared<emulator::Captured>(*graph)] { kept->replay(); }, false);
  return graph->late = !graph->late, cudaSuccess;
}
inline cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int bytes) {
  const std::lock_guard lock(emulator::running);
  emulator::shared_limits[kernel] = static_cast<size_t>(bytes);
  return bytes <= 227 << 10 ? cudaSuccess : cudaErrorInvalidValue;
}

inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  return attributes->sharedSizeBytes = 0, cudaSuccess;
}
inline cudaError_t cudaFuncGetName(const char** name, const void*) { return *name = "kernel", cudaSuccess; }
template <class Kernel> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel*) {
  return attributes->ptxVersion = 90, cudaSuccess;
}

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
  const std::tuple<P...> kept(std::forward<A>(arguments)...);
  const cudaLaunchConfig_t grid = *config;
  {
    const std::lock_guard lock(emulator::running);
    if (!emulator::fits_shared(reinterpret_cast<const void*>(kernel), grid.dynamicSmemBytes))
      return cudaErrorInvalidValue;
  }
  const bool waits = grid.numAttrs > 0 && grid.attrs->val.programmaticStreamSerializationAllowed != 0;
  if (waits && !config->stream->follows)
    emulator::refuse("a kernel is to begin early, but what comes before it is no kernel");
  const auto run = [=] {
    if (!emulator::fits_shared(reinterpret_cast<const void*>(kernel), grid.dynamicSmemBytes))
      emulator::refuse("a kernel in a graph may have less shared memory than when it was captured");
    const std::function<void()> body = [&] { std::apply(kernel, kept); };
    gridDim = grid.gridDim;
    blockDim = grid.blockDim;
    for (unsigned z = 0; z < grid.gridDim.z; ++z)
      for (unsigned y = 0; y < grid.gridDim.y; ++y)
        for (unsigned x = 0; x < grid.gridDim.x; ++x) {
          blockIdx = {x, y, z};
          emulator::run_block(grid.blockDim, grid.dynamicSmemBytes, body, waits);
        }
  };
  return config->stream->take(run, true), cudaSuccess;
}
