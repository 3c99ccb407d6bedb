#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <unordered_map>

namespace tessera {

/// Memory for large blocks. They lie side by side in regions of huge pages, which save most TLB misses, and a
/// huge page at the end of a block holds the beginning of the next one. (Blocks that malloc aligns to huge
/// pages leave the rest of their last page empty, a sixth of a model's memory.) The regions stay mapped until
/// the process ends.
class LargeBlocks {
 public:
  static constexpr size_t least = size_t{1} << 17;  ///< bytes from which a block belongs here

  /// A block of this many bytes that begins with a page; null where the system has no more memory, or has
  /// none for this process.
  void* take(size_t bytes);

  /// Gives a block and its memory back to the system; false if it is none of these.
  bool give(void* block);

 private:
  bool add_region(size_t bytes);
  void add_free(char* begin, size_t bytes);

  std::mutex mutex_;
  std::map<char*, size_t> free_;             // ranges by address, no two of which touch
  std::unordered_map<void*, size_t> taken_;  // bytes of each block
};

}  // namespace tessera
