#include "tests/mpi/allocations.h"

#include <cstdlib>
#include <new>

namespace {
thread_local int64_t counted = 0;
thread_local int paused = 0;
}  // namespace

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  if (paused == 0) ++counted;
  return std::malloc(bytes > 0 ? bytes : 1);
}
void* operator new(std::size_t bytes) {
  if (void* memory = operator new(bytes, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace tessera {

int64_t allocations() { return counted; }
NotCounted::NotCounted() { ++paused; }
NotCounted::~NotCounted() { --paused; }

}  // namespace tessera
