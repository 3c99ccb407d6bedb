#pragma once

// Switches between fibers: by setjmp and longjmp, which are fast, or under a sanitizer by swapcontext, with
// calls that tell the sanitizer. The thread sanitizer sees each thread of a block as a thread of its own that
// only the block's barriers order, so that it finds the races that compute-sanitizer's racecheck would find
// in shared memory, and those within a block in device memory. The address sanitizer knows the end of each
// array in shared memory and of each allocation on the device.

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define UNTRACED __attribute__((no_sanitize("thread"), noinline))
#else
#define UNTRACED
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulator {

// Whether a switch orders the work before it before the work after it, as the one at a block's end does.
enum class Order { none, last };

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)

struct Place {
  ucontext_t context{};
  void* fiber = nullptr;  // the thread sanitizer's fiber; for the scheduler, that of the thread that runs it
  const void* stack = nullptr;
  size_t stack_bytes = 0;
  void* kept = nullptr;  // the address sanitizer's record of a stack that was left

  void set_stack(const void* bottom, size_t bytes) {
    stack = bottom;
    stack_bytes = bytes;
  }
};

inline Place* left = nullptr;  // the place that the latest switch left

// Must be called first in a place that was switched to.
UNTRACED inline void arrived([[maybe_unused]] Place& here) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(here.kept, &left->stack, &left->stack_bytes);
#endif
}

UNTRACED inline void leave(Place& from, Place& to, [[maybe_unused]] Order order) {
  left = &from;
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(to.fiber, order == Order::last ? 0 : __tsan_switch_to_fiber_no_sync);
#endif
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(order == Order::last ? nullptr : &from.kept, to.stack, to.stack_bytes);
#endif
  swapcontext(&from.context, &to.context);
  arrived(from);
}

UNTRACED inline void begin(Place& from, Place& to, const ucontext_t& start) {
  to.context = start;
#ifdef __SANITIZE_THREAD__
  from.fiber = __tsan_get_current_fiber();
  if (!to.fiber) to.fiber = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(to.fiber, 0);
  left = &from;
  swapcontext(&from.context, &to.context);
#else
  to.kept = nullptr;
  leave(from, to, Order::none);
#endif
}

#else

struct Place {
  jmp_buf at{};
  void set_stack(const void*, size_t) {}
};

inline void arrived(Place&) {}

inline void leave(Place& from, Place& to, Order) {
  if (_setjmp(from.at) == 0) _longjmp(to.at, 1);
}

inline void begin(Place& from, Place&, const ucontext_t& start) {
  if (_setjmp(from.at) == 0) setcontext(&start);
}

#endif

// Tell the thread sanitizer of a barrier, before it and after it.
UNTRACED inline void arrive([[maybe_unused]] void* barrier) {
#ifdef __SANITIZE_THREAD__
  __tsan_release(barrier);
#endif
}
UNTRACED inline void go_on([[maybe_unused]] void* barrier) {
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(barrier);
#endif
}

}  // namespace emulator
