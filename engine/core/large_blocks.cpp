#include "engine/core/large_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <new>
#include <utility>

namespace tessera {

namespace {

constexpr size_t page = 4096, huge_page = size_t{2} << 20, usual_region = size_t{64} << 20;

constexpr size_t whole(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Addresses for `bytes` that begin with a huge page; null if there are none.
char* map_region(size_t bytes) {
  void* mapped = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const all = static_cast<char*>(mapped);
  const size_t before = whole(reinterpret_cast<uintptr_t>(all), huge_page) - reinterpret_cast<uintptr_t>(all);
  if (before > 0) munmap(all, before);
  munmap(all + before + bytes, huge_page - before);
  madvise(all + before, bytes, MADV_HUGEPAGE);
  return all + before;
}

}  // namespace

// Adds a region of at least `bytes` to the free ranges; false if the system has none.
bool LargeBlocks::add_region(size_t bytes) {
  const size_t enough = whole(bytes, huge_page);
  size_t size = std::max(usual_region, enough);
  char* region = map_region(size);
  if (!region) region = map_region(size = enough);
  if (region) add_free(region, size);
  return region != nullptr;
}

// Joins the range with those that it touches.
void LargeBlocks::add_free(char* begin, size_t bytes) {
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && begin + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto last = std::prev(next);
    if (last->first + last->second == begin) {
      last->second += bytes;
      return;
    }
  }
  free_.emplace(begin, bytes);
}

void* LargeBlocks::take(size_t bytes) {
  if (bytes > PTRDIFF_MAX / 2) return nullptr;  // more than any address space
  const size_t size = whole(bytes, page);
  const std::lock_guard lock(mutex_);
  const auto smallest = [&] {  // the smallest range that holds the block
    auto best = free_.end();
    for (auto range = free_.begin(); range != free_.end(); ++range)
      if (range->second >= size && (best == free_.end() || range->second < best->second)) best = range;
    return best;
  };
  auto range = smallest();
  if (range == free_.end()) {
    if (!add_region(size)) return nullptr;
    range = smallest();
  }
  char* const begin = range->first;
  taken_.emplace(begin, size);
  auto rest = free_.extract(range);
  rest.key() = begin + size;
  rest.mapped() -= size;
  if (rest.mapped() > 0) free_.insert(std::move(rest));
  return begin;
}

bool LargeBlocks::give(void* block) {
  const std::lock_guard lock(mutex_);
  const auto taken = taken_.find(block);
  if (taken == taken_.end()) return false;
  char* const begin = static_cast<char*>(block);
  const size_t size = taken->second;
  madvise(begin, size, MADV_DONTNEED);
  taken_.erase(taken);
  try {
    add_free(begin, size);
  } catch (const std::bad_alloc&) {  // only its addresses are lost
  }
  return true;
}

}  // namespace tessera
