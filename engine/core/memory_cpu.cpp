#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "engine/core/device.h"
#include "engine/core/error.h"
#include "engine/core/memory.h"

namespace tessera {

namespace {

constexpr size_t huge_page = size_t{2} << 20;

}  // namespace

template <> void* Memory<Cpu>::allocate(size_t bytes) {
  const size_t alignment = bytes >= huge_page ? huge_page : 64;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, rounded);
  check(block != nullptr, "memory: no ", bytes, " bytes left on the cpu; try a smaller batch");
  // Large blocks live long and are walked whole: huge pages save most of their TLB misses.
  if (alignment == huge_page) madvise(block, rounded, MADV_HUGEPAGE);
  return block;
}

template <> void Memory<Cpu>::release(void* block, size_t) { std::free(block); }

template <> void Memory<Cpu>::zero(void* to, size_t bytes) { std::memset(to, 0, bytes); }

template <> void Memory<Cpu>::copy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

template <> void Memory<Cpu>::to_host(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

template <> void Memory<Cpu>::from_host(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

}  // namespace tessera
