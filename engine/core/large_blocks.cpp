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

void LargeBlocks::Ranges::erase(std::map<char*, size_t>::iterator at) {
  by_size_.erase({at->second, at->first});
  by_address_.erase(at);
}

// Joins the range with those that it touches.
void LargeBlocks::Ranges::add(char* begin, size_t bytes) {
  const auto next = by_address_.lower_bound(begin);
  if (next != by_address_.begin()) {
    const auto last = std::prev(next);
    if (last->first + last->second == begin) {
      begin = last->first;
      bytes += last->second;
      erase(last);
    }
  }
  if (next != by_address_.end() && begin + bytes == next->first) {
    bytes += next->second;
    erase(next);
  }
  by_address_.emplace(begin, bytes);
  by_size_.emplace(bytes, begin);
}

char* LargeBlocks::Ranges::cut(size_t bytes) {
  const auto fit = by_size_.lower_bound({bytes, nullptr});
  if (fit == by_size_.end()) return nullptr;
  const auto [size, begin] = *fit;
  erase(by_address_.find(begin));
  if (size > bytes) add(begin + bytes, size - bytes);
  return begin;
}

void LargeBlocks::Ranges::move_to(Ranges& other) {
  for (const auto& [begin, bytes] : by_address_) {
    madvise(begin, bytes, MADV_DONTNEED);
    other.add(begin, bytes);
  }
  by_address_.clear();
  by_size_.clear();
}

// Adds a region of at least `bytes` to the empty ranges; false if the system has none.
bool LargeBlocks::add_region(size_t bytes) {
  const size_t enough = whole(bytes, huge_page);
  size_t size = std::max(usual_region, enough);
  char* region = map_region(size);
  if (!region) region = map_region(size = enough);
  if (region) empty_.add(region, size);
  return region != nullptr;
}

void* LargeBlocks::take(size_t bytes) {
  if (bytes > PTRDIFF_MAX / 2) return nullptr;  // more than any address space
  const size_t size = whole(bytes, page);
  const std::lock_guard lock(mutex_);
  char* block = kept_.cut(size);
  if (!block) {
    block = empty_.cut(size);
    if (!block && add_region(size)) block = empty_.cut(size);
    if (!block) return nullptr;
    held_.bytes += size;
    ++held_.askings;
  }
  taken_.emplace(block, size);
  return block;
}

bool LargeBlocks::give(void* block) {
  const std::lock_guard lock(mutex_);
  const auto taken = taken_.find(block);
  if (taken == taken_.end()) return false;
  const size_t size = taken->second;
  taken_.erase(taken);
  try {
    kept_.add(static_cast<char*>(block), size);
  } catch (const std::bad_alloc&) {  // only its addresses are lost
    madvise(block, size, MADV_DONTNEED);
    held_.bytes -= size;
  }
  return true;
}

void LargeBlocks::trim() {
  const std::lock_guard lock(mutex_);
  kept_.move_to(empty_);
  held_.bytes = 0;
  for (const auto& [block, bytes] : taken_) held_.bytes += bytes;
}

LargeBlocks::Held LargeBlocks::held() {
  const std::lock_guard lock(mutex_);
  return held_;
}

}  // namespace tessera
