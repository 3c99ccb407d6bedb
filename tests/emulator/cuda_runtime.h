#pragma once

// A processor that plays the GPU, for machines that have none: the kernels of engine/**/*.cu compiled by the
// host's compiler and run thread by thread, each CUDA thread a fiber that stops at barriers and at exchanges
// within its warp. It shows wrong indices, formulas, barriers and captures; it says nothing about speed,
// about rounding of the GPU's own instructions, or about races that no order of fibers shows (odd blocks run
// their threads in the other order). New memory is filled with NaN bytes. Only what the backend calls is
// here. cmake -DTESSERA_CUDA=EMULATED builds with it.

#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __constant__ static
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace emulator {

// --- one block: its threads as fibers ---

struct Barrier {
  int arrived = 0;
  uint64_t generation = 0;
};

struct Fiber {
  static constexpr size_t stack_bytes = 256 << 10;
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
  ucontext_t start{};
  jmp_buf at{};
  bool begun = false, ended = true;
  uint3 index;
};

struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Barrier> warps;
  std::vector<std::array<std::array<std::byte, 16>, 32>> exchange;  // of each warp
  Barrier barrier;
  int alive = 0;
  size_t running = 0;
  jmp_buf scheduler{};
  const std::function<void()>* body = nullptr;
  std::vector<unsigned char> shared;
};
inline Block block;

inline void* dynamic_shared() {
  const auto address = reinterpret_cast<uintptr_t>(block.shared.data());
  return reinterpret_cast<void*>((address + 127) / 128 * 128);
}

inline void yield() {
  Fiber& own = *block.fibers[block.running];
  if (_setjmp(own.at) == 0) _longjmp(block.scheduler, 1);
  threadIdx = own.index;
}

inline void wait_at(Barrier& barrier, int expected) {
  const uint64_t generation = barrier.generation;
  if (++barrier.arrived == expected) {
    barrier.arrived = 0;
    ++barrier.generation;
    return;
  }
  while (barrier.generation == generation) yield();
}

inline void fiber_main() {
  (*block.body)();
  block.fibers[block.running]->ended = true;
  --block.alive;
  if (block.alive > 0 && block.barrier.arrived == block.alive) {  // those that wait, wait no longer for it
    block.barrier.arrived = 0;
    ++block.barrier.generation;
  }
  _longjmp(block.scheduler, 1);
}

inline void resume(size_t i) {
  Fiber& fiber = *block.fibers[i];
  block.running = i;
  threadIdx = fiber.index;
  if (_setjmp(block.scheduler) != 0) return;
  if (fiber.begun) _longjmp(fiber.at, 1);
  fiber.begun = true;
  setcontext(&fiber.start);
}

inline void run_block(const dim3& threads, size_t shared_bytes, const std::function<void()>& body,
                      bool reversed) {
  const size_t count = size_t{threads.x} * threads.y * threads.z;
  while (block.fibers.size() < count) block.fibers.push_back(std::make_unique<Fiber>());
  block.shared.assign(shared_bytes + 256, 0xff);
  block.warps.assign((count + 31) / 32, {});
  block.exchange.resize((count + 31) / 32);
  block.barrier = {};
  block.alive = static_cast<int>(count);
  block.body = &body;
  for (size_t i = 0; i < count; ++i) {
    Fiber& fiber = *block.fibers[i];
    fiber.begun = fiber.ended = false;
    fiber.index = {static_cast<unsigned>(i % threads.x), static_cast<unsigned>(i / threads.x % threads.y),
                   static_cast<unsigned>(i / threads.x / threads.y)};
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.get();
    fiber.start.uc_stack.ss_size = Fiber::stack_bytes;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, fiber_main, 0);
  }
  for (int rounds = 0; block.alive > 0; ++rounds) {
    if (rounds > 1 << 22) {
      std::fputs("emulator: a block waits at a barrier that not all of its threads reach\n", stderr);
      std::abort();
    }
    for (size_t k = 0; k < count; ++k) {
      const size_t i = reversed ? count - 1 - k : k;
      if (!block.fibers[i]->ended) resume(i);
    }
  }
}

inline int lane() { return static_cast<int>(block.running % 32); }

// What lane `from` of the warp gives as its `value`; all lanes of the mask call it.
template <class T> inline T exchange(unsigned mask, T value, int from) {
  static_assert(sizeof(T) <= 16);
  const size_t warp = block.running / 32;
  const int expected = std::popcount(mask);
  std::memcpy(block.exchange[warp][static_cast<size_t>(lane())].data(), &value, sizeof(T));
  wait_at(block.warps[warp], expected);
  T result;
  std::memcpy(&result, block.exchange[warp][static_cast<size_t>(from & 31)].data(), sizeof(T));
  wait_at(block.warps[warp], expected);
  return result;
}

// --- streams, which work at once, or are captured ---

using Work = std::function<void()>;
struct Stream {
  std::vector<Work>* captured = nullptr;
  void take(Work work) {
    if (captured)
      captured->push_back(std::move(work));
    else
      work();
  }
};
inline std::mutex launching;

}  // namespace emulator

// --- within kernels ---

inline void __syncthreads() { emulator::wait_at(emulator::block.barrier, emulator::block.alive); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { emulator::exchange(mask, 0, 0); }
inline void __threadfence() {}
template <class T> T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  const int base = emulator::lane() / width * width;
  return emulator::exchange(mask, value, base + (from & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int = 32) {
  return emulator::exchange(mask, value, emulator::lane() ^ bits);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const int own = emulator::lane() % width, from = own + static_cast<int>(by);
  return emulator::exchange(mask, value,
                            from < width ? emulator::lane() + static_cast<int>(by) : emulator::lane());
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const int own = emulator::lane() % width;
  return emulator::exchange(
      mask, value, own >= static_cast<int>(by) ? emulator::lane() - static_cast<int>(by) : emulator::lane());
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  unsigned votes = 0;
  for (int i = 0; i < 32; ++i) {
    if (!(mask >> i & 1u)) continue;
    if (emulator::exchange(mask, predicate != 0, i)) votes |= 1u << i;
  }
  return votes;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }
template <class T> T __ldg(const T* from) { return *from; }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
template <class T> constexpr T min(T a, T b) { return b < a ? b : a; }
template <class T> constexpr T max(T a, T b) { return a < b ? b : a; }
inline void __trap() { std::abort(); }
template <class T> T atomicAdd(T* at, T value) {
  const T before = *at;
  *at = before + value;
  return before;
}
template <class T> T atomicMin(T* at, T value) {
  const T before = *at;
  *at = value < before ? value : before;
  return before;
}

// --- the runtime ---

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation, cudaErrorInsufficientDriver, cudaErrorNoDevice };
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
using cudaEvent_t = int*;
using cudaGraph_t = std::vector<emulator::Work>*;
using cudaGraphExec_t = std::vector<emulator::Work>*;
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
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
inline cudaError_t cudaMemGetInfo(size_t* free, size_t* total) { return *free = *total = 0, cudaSuccess; }
inline cudaError_t cudaMalloc(void** block, size_t bytes) {
  *block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*block == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*block, 0xff, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMallocHost(void** block, size_t bytes) { return cudaMalloc(block, bytes); }
inline cudaError_t cudaFree(void* block) { return std::free(block), cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = new emulator::Stream, cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return *event = nullptr, cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                                   cudaStream_t stream) {
  return stream->take([=] { std::memmove(to, from, bytes); }), cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return stream->take([=] { std::memset(to, value, bytes); }), cudaSuccess;
}
inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return stream->captured = new std::vector<emulator::Work>, cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return *graph = stream->captured, stream->captured = nullptr, cudaSuccess;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long) {
  return *ready = new std::vector<emulator::Work>(*graph), cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return delete graph, cudaSuccess; }
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
  for (const emulator::Work& work : *graph) work();
  return cudaSuccess;
}
inline cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
  const std::tuple<P...> kept(std::forward<A>(arguments)...);
  const cudaLaunchConfig_t grid = *config;
  config->stream->take([=] {
    const std::lock_guard lock(emulator::launching);
    const std::function<void()> body = [&] { std::apply(kernel, kept); };
    gridDim = grid.gridDim;
    blockDim = grid.blockDim;
    for (unsigned z = 0; z < grid.gridDim.z; ++z)
      for (unsigned y = 0; y < grid.gridDim.y; ++y)
        for (unsigned x = 0; x < grid.gridDim.x; ++x) {
          blockIdx = {x, y, z};
          emulator::run_block(grid.blockDim, grid.dynamicSmemBytes, body, (x + y + z) % 2 == 1);
        }
  });
  return cudaSuccess;
}
