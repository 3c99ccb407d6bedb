#include "data/image_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tessera {

namespace {

constexpr int64_t claimed = -1;
constexpr size_t page = 4096;  // the slots begin on one of their own

// Memory of this process alone, or null where its address space has no room for it.
ImageCache::Memory own_memory(size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return {static_cast<std::byte*>(memory), [bytes](std::byte* at) { munmap(at, bytes); }};
}

}  // namespace

ImageCache::ImageCache(int64_t images, size_t image_bytes, size_t most_bytes)
    : images_(images),
      slots_(std::min(images, static_cast<int64_t>(most_bytes / image_bytes))),
      image_bytes_(image_bytes) {
  if (slots_ > 0) memory_ = own_memory(bytes());
}

bool ImageCache::get(int64_t i, uint8_t* to) const {
  if (!memory_) return false;
  const int64_t kept = place(i).load(std::memory_order_acquire);
  if (kept <= 0) return false;
  std::memcpy(to, slot(kept - 1), image_bytes_);
  return true;
}

void ImageCache::keep(int64_t i, const uint8_t* pixels) {
  if (!memory_ || used().load(std::memory_order_relaxed) >= slots_) return;
  int64_t none = 0;
  if (!place(i).compare_exchange_strong(none, claimed, std::memory_order_relaxed)) return;
  const int64_t own = used().fetch_add(1, std::memory_order_relaxed);
  if (own >= slots_) return;  // full: this image stays claimed, as all others stay out
  std::memcpy(slot(own), pixels, image_bytes_);
  place(i).store(own + 1, std::memory_order_release);
}

void ImageCache::move_to(Memory memory) { memory_ = std::move(memory); }

size_t ImageCache::header_bytes() const {
  return (static_cast<size_t>(1 + images_) * sizeof(int64_t) + page - 1) / page * page;
}

uint8_t* ImageCache::slot(int64_t s) const {
  return reinterpret_cast<uint8_t*>(memory_.get()) + header_bytes() + static_cast<size_t>(s) * image_bytes_;
}

}  // namespace tessera
