#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

namespace tessera {

/// Memory for large blocks. They lie side by side in regions of huge pages, which save most TLB misses, and a
/// huge page at the end of a block holds the beginning of the next one. (Blocks that malloc aligns to huge
/// pages leave the rest of their last page empty, a sixth of a model's memory.) What is given back is joined
/// and serves blocks of any size, so that steps whose sizes differ take no more memory than the largest. The
/// regions stay mapped until the process ends.
class LargeBlocks {
 public:
  static constexpr size_t least = size_t{1} << 17;  ///< bytes from which a block belongs here

  /// A block of this many bytes that begins with a page; null where the system has no more memory, or has
  /// none for this process.
  void* take(size_t bytes);

  /// Gives a block back, whose memory stays here; false if it is none of these.
  bool give(void* block);

  /// Gives the memory that no block uses back to the system.
  void trim();

  struct Held {
    size_t bytes = 0;      ///< memory of the system's, in blocks or kept
    uint64_t askings = 0;  ///< blocks that needed more of it
  };
  Held held();

 private:
  // Ranges that no block uses, no two of a kind of which touch.
  class Ranges {
   public:
    void add(char* begin, size_t bytes);
    // The first `bytes` of the smallest range that has them; null if there is none.
    char* cut(size_t bytes);
    void move_to(Ranges& other);

   private:
    void erase(std::map<char*, size_t>::iterator at);

    std::map<char*, size_t> by_address_;
    std::set<std::pair<size_t, char*>> by_size_;
  };

  bool add_region(size_t bytes);

  std::mutex mutex_;
  Ranges kept_, empty_;                      // with memory of the system's, and without
  std::unordered_map<void*, size_t> taken_;  // bytes of each block
  Held held_;
};

}  // namespace tessera
