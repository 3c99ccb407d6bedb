#pragma once

// Runs one block of a kernel on the CPU. Each of its threads is a fiber, which runs until it stops at a
// barrier or at an exchange within its warp.

#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include <sanitizing.h>

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

inline uint3 blockIdx;
inline dim3 blockDim, gridDim;

namespace emulator {

struct Barrier {
  int arrived = 0;
  uint64_t generation = 0;
};

struct Fiber {
  static constexpr size_t stack_bytes = 256 << 10;
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
  ucontext_t start{};
  Place place;
  bool begun = false, ended = true, awaited = false;
  uint3 index;
};

struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Barrier> warps;
  std::vector<std::array<std::array<std::byte, 16>, 32>> exchange;  // of each warp
  Barrier barrier;
  int alive = 0;
  size_t running = 0;
  uint64_t moves = 0;  // how often a fiber has ended or passed a barrier
  Fiber* current = nullptr;
  Place scheduler;
  bool waits = false;  // whether its threads must call wait_for_previous_kernel()
  const std::function<void()>* body = nullptr;
  std::unique_ptr<unsigned char, decltype(&std::free)> shared{nullptr, &std::free};
};
inline Block block;

// Memory whose exact end the address sanitizer knows; null if there is no memory left.
inline void* aligned(size_t alignment, size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}

inline void* dynamic_shared() { return block.shared.get(); }

UNTRACED inline const uint3& thread_index() { return block.current->index; }

UNTRACED inline void wait_at(Barrier& barrier, int expected) {
  const uint64_t generation = barrier.generation;
  if (++barrier.arrived == expected) {
    barrier.arrived = 0;
    ++barrier.generation;
    ++block.moves;
    return;
  }
  while (barrier.generation == generation) leave(block.current->place, block.scheduler, Order::none);
  ++block.moves;
}

// A meeting of threads that share memory: what each has written before it, all may read after it.
UNTRACED inline void meet_at(Barrier& barrier, int expected) {
  // the next meeting gets another place, because some threads may wait there before all have left this one
  char* const here = reinterpret_cast<char*>(&barrier) + barrier.generation % 2;
  arrive(here);
  wait_at(barrier, expected);
  go_on(here);
}
UNTRACED inline void wait_for_all() { meet_at(block.barrier, block.alive); }
UNTRACED inline void wait_for_warp() { meet_at(block.warps[block.running / 32], 32); }

// Kernels run one after another here; this finds kernels that forget to wait for the previous one.
UNTRACED inline void wait_for_previous_kernel() { block.current->awaited = true; }

UNTRACED inline void fiber_main() {
  arrived(block.current->place);
  (*block.body)();
  if (block.waits && !block.current->awaited) {
    std::fputs("emulator: a kernel does not begin with wait_for_previous_kernel()\n", stderr);
    std::abort();
  }
  block.current->ended = true;
  ++block.moves;
  --block.alive;
  if (block.alive > 0 && block.barrier.arrived == block.alive) {  // the others need not wait for this thread
    block.barrier.arrived = 0;
    ++block.barrier.generation;
  }
  leave(block.current->place, block.scheduler, Order::last);
}

inline void resume(size_t i) {
  Fiber& fiber = *block.fibers[i];
  block.running = i;
  block.current = &fiber;
  if (fiber.begun) return leave(block.scheduler, fiber.place, Order::none);
  fiber.begun = true;
  begin(block.scheduler, fiber.place, fiber.start);
}

// Runs each fiber of [begin, end) until it stops, the last ones first if `reversed`.
inline void resume_each(size_t begin, size_t end, bool reversed) {
  for (size_t k = begin; k < end; ++k) {
    const size_t i = reversed ? begin + end - 1 - k : k;
    if (!block.fibers[i]->ended) resume(i);
  }
}

// Runs each warp as far as it comes without the others, the last one first if `reversed`.
inline void resume_warps(size_t count, bool reversed) {
  const size_t warps = (count + 31) / 32;
  for (size_t k = 0; k < warps; ++k) {
    const size_t begin = (reversed ? warps - 1 - k : k) * 32;
    uint64_t before = 0;
    do {
      before = block.moves;
      resume_each(begin, begin + 32 < count ? begin + 32 : count, reversed);
    } while (block.moves != before);
  }
}

// Blocks take turns in four orders of their threads: warp after warp or all in step, from the first or from
// the last one on. A missing barrier shows in one of them at least.
inline void run_block(const dim3& threads, size_t shared_bytes, const std::function<void()>& body,
                      bool waits) {
  static unsigned blocks_run = 0;
  const unsigned order = blocks_run++;
  const size_t count = size_t{threads.x} * threads.y * threads.z;
  while (block.fibers.size() < count) block.fibers.push_back(std::make_unique<Fiber>());
  block.shared.reset(static_cast<unsigned char*>(aligned(128, shared_bytes)));
  if (block.shared) std::memset(block.shared.get(), 0xff, shared_bytes);
  block.warps.assign((count + 31) / 32, {});
  block.exchange.resize((count + 31) / 32);
  block.barrier = {};
  block.alive = static_cast<int>(count);
  block.body = &body;
  block.waits = waits;
  for (size_t i = 0; i < count; ++i) {
    Fiber& fiber = *block.fibers[i];
    fiber.begun = fiber.ended = fiber.awaited = false;
    fiber.index = {static_cast<unsigned>(i % threads.x), static_cast<unsigned>(i / threads.x % threads.y),
                   static_cast<unsigned>(i / threads.x / threads.y)};
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.get();
    fiber.start.uc_stack.ss_size = Fiber::stack_bytes;
    fiber.place.set_stack(fiber.stack.get(), Fiber::stack_bytes);
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, fiber_main, 0);
  }
  for (int rounds = 0; block.alive > 0; ++rounds) {
    if (rounds > 1 << 22) {
      std::fputs("emulator: a block waits at a barrier that not all of its threads reach\n", stderr);
      std::abort();
    }
    if (order / 2 % 2 == 0)
      resume_warps(count, order % 2 == 1);
    else
      resume_each(0, count, order % 2 == 1);
  }
}

UNTRACED inline int lane() { return static_cast<int>(block.running % 32); }

// Returns the `value` of the warp's lane `from`. All lanes of the mask must call it. It orders no memory
// accesses.
template <class T> UNTRACED inline T exchange(unsigned mask, T value, int from) {
  static_assert(sizeof(T) <= 16);
  const size_t warp = block.running / 32;
  const int expected = std::popcount(mask);
  auto* const places = block.exchange[warp].data();
  __builtin_memcpy(places + lane(), &value, sizeof(T));
  wait_at(block.warps[warp], expected);
  T result;
  __builtin_memcpy(&result, places + (from & 31), sizeof(T));
  wait_at(block.warps[warp], expected);
  return result;
}

}  // namespace emulator

#define threadIdx (::emulator::thread_index())
