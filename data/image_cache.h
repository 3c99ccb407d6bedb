#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tessera {

/// Decoded images of one size, as many as there is room for, in the order in which they come. Threads may use
/// it together, and so may processes that map the same memory: a slot is claimed before it is written and
/// named after it, so nobody reads half an image, and what a killed process has claimed stays empty.
class ImageCache {
 public:
  /// Memory that is zero at first. Its deleter gives it back.
  using Memory = std::shared_ptr<std::byte>;

  ImageCache(int64_t images, size_t image_bytes, size_t most_bytes);
  ImageCache(const ImageCache&) = delete;
  ImageCache& operator=(const ImageCache&) = delete;

  /// Copies image i to `to`, or returns false where it is not kept.
  bool get(int64_t i, uint8_t* to) const;
  /// Keeps image i where it can; if another thread has kept it meanwhile, that copy stays.
  void keep(int64_t i, const uint8_t* pixels);

  /// The bytes of memory that all of it takes; pages that no image has come to take none.
  size_t bytes() const { return header_bytes() + static_cast<size_t>(slots_) * image_bytes_; }
  /// Keeps images in this memory of bytes() bytes from now on, with what other processes keep there. Not
  /// while another thread uses the cache.
  void move_to(Memory memory);

 private:
  size_t header_bytes() const;
  std::atomic_ref<int64_t> used() const { return std::atomic_ref(header()[0]); }
  /// 0: not kept, claimed: about to be, else the number of its slot + 1.
  std::atomic_ref<int64_t> place(int64_t i) const { return std::atomic_ref(header()[1 + i]); }
  int64_t* header() const { return reinterpret_cast<int64_t*>(memory_.get()); }
  uint8_t* slot(int64_t s) const;

  int64_t images_, slots_;
  size_t image_bytes_;
  Memory memory_;
};

}  // namespace tessera
