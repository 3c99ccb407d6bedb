#pragma once

// Runs the kernels of engine/**/*.cu on the CPU, for machines without a GPU. The host's compiler compiles
// them, and each CUDA thread is a fiber that stops at barriers and at exchanges within its warp. This finds
// wrong indices, formulas, barriers and captures. It says nothing about speed or about the rounding of the
// GPU's own instructions. It finds races only where the order of fibers shows them (odd blocks run their
// threads in reverse order), or under the thread sanitizer (sanitizing.h). New memory is filled with NaN
// bytes. Only what the backend calls is here. cmake -DTESSERA_CUDA=EMULATED builds with it.

#include <fibers.h>

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

// --- streams: their work runs at once, or is captured ---

// A capture: the work of the captured stream and of the streams that fork from it until they join again. One
// replay runs a fork's work in the order of the calls, the next replay delays it until its join, so that
// parts which depend on each other give different results.
struct Captured {
  enum class Kind { work, fork, join };
  struct Item {
    Kind kind;
    std::function<void()> work;
  };
  std::vector<Item> items;
  std::vector<struct Stream*> forks;  // streams that have not joined yet
  bool late = false;

  void replay() {
    std::vector<const Item*> waiting;
    for (const Item& item : items) {
      if (item.kind == Kind::join) {
        for (const Item* held : waiting) held->work();
        waiting.clear();
      } else if (item.kind == Kind::fork && late) {
        waiting.push_back(&item);
      } else {
        item.work();
      }
    }
    late = !late;
  }
};

using Work = std::function<void()>;
struct Stream {
  Captured* captured = nullptr;
  bool forked = false;
  bool follows = true;  // whether a kernel may start early: the last work is a kernel of this stream
  void take(Work work, bool is_kernel) {
    follows = is_kernel;
    if (captured)
      captured->items.push_back({forked ? Captured::Kind::fork : Captured::Kind::work, std::move(work)});
    else
      work();
  }
};
// When an event was recorded last, and in which stream's capture.
struct Event {
  std::chrono::steady_clock::time_point time;
  Stream* stream = nullptr;
  Captured* captured = nullptr;
};
inline std::mutex launching;
inline std::map<const void*, size_t> shared_limits;  // of kernels that have requested more than 48 KB
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
inline cudaError_t cudaMallocHost(void** block, size_t bytes) { return cudaMalloc(block, bytes); }
inline cudaError_t cudaFree(void* block) { return std::free(block), cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = new emulator::Stream, cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete stream, cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  stream->follows = false;
  if (!event->captured) return cudaSuccess;
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
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = new emulator::Event, cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count(), cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* block) { return std::free(block), cudaSuccess; }
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return *event = {std::chrono::steady_clock::now(), stream, stream->captured}, cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                                   cudaStream_t stream) {
  return stream->take([=] { std::memmove(to, from, bytes); }, false), cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return stream->take([=] { std::memset(to, value, bytes); }, false), cudaSuccess;
}
inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->follows = false;
  return stream->captured = new emulator::Captured, cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = std::exchange(stream->captured, nullptr);
  if ((*graph)->forks.empty()) return cudaSuccess;
  for (emulator::Stream* fork : (*graph)->forks) *fork = {};
  return delete *graph, *graph = nullptr, cudaErrorInvalidValue;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long) {
  return *ready = new emulator::Captured(*graph), cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return delete graph, cudaSuccess; }
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  stream->follows = false;
  return graph->replay(), cudaSuccess;
}
inline cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int bytes) {
  const std::lock_guard lock(emulator::launching);
  emulator::shared_limits[kernel] = static_cast<size_t>(bytes);
  return bytes <= 227 << 10 ? cudaSuccess : cudaErrorInvalidValue;
}

template <class Kernel> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel*) {
  return attributes->ptxVersion = 90, cudaSuccess;
}

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
  const std::tuple<P...> kept(std::forward<A>(arguments)...);
  const cudaLaunchConfig_t grid = *config;
  {
    const std::lock_guard lock(emulator::launching);
    if (!emulator::fits_shared(reinterpret_cast<const void*>(kernel), grid.dynamicSmemBytes))
      return cudaErrorInvalidValue;
  }
  const bool waits = grid.numAttrs > 0 && grid.attrs->val.programmaticStreamSerializationAllowed != 0;
  if (waits && !config->stream->follows) {
    std::fputs("emulator: a kernel is to begin early, but what comes before it is no kernel\n", stderr);
    std::abort();
  }
  const auto run = [=] {
    const std::lock_guard lock(emulator::launching);
    if (!emulator::fits_shared(reinterpret_cast<const void*>(kernel), grid.dynamicSmemBytes)) {
      std::fputs("emulator: a kernel in a graph may have less shared memory than when it was captured\n",
                 stderr);
      std::abort();
    }
    const std::function<void()> body = [&] { std::apply(kernel, kept); };
    gridDim = grid.gridDim;
    blockDim = grid.blockDim;
    for (unsigned z = 0; z < grid.gridDim.z; ++z)
      for (unsigned y = 0; y < grid.gridDim.y; ++y)
        for (unsigned x = 0; x < grid.gridDim.x; ++x) {
          blockIdx = {x, y, z};
          emulator::run_block(grid.blockDim, grid.dynamicSmemBytes, body, (x + y + z) % 2 == 1, waits);
        }
  };
  return config->stream->take(run, true), cudaSuccess;
}
