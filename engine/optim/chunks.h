#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/core/parallel.h"

namespace tessera {

// Cuts several arrays into chunks of a fixed length, so that one parallel loop serves hundreds of small
// parameters. The cut depends on the arrays' lengths alone. For CPU kernels.
class Chunks {
 public:
  struct Chunk {
    int64_t item, begin, end;  // elements [begin, end) of array `item`
  };

  // Each item has its length as a member n.
  template <class Item> Chunks(const Item* items, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      first_.push_back(size_);
      lengths_.push_back(items[i].n);
      size_ += (items[i].n + length_ - 1) / length_;
    }
  }

  int64_t size() const { return size_; }

  Chunk operator[](int64_t c) const {
    const auto after =
        std::upper_bound(first_.begin(), first_.end(), c);  // skips empty arrays, which have no chunk
    const auto item = after - first_.begin() - 1;
    const int64_t begin = (c - *(after - 1)) * length_;
    return {item, begin, std::min(begin + length_, lengths_[static_cast<size_t>(item)])};
  }

 private:
  int64_t length_ = chunk_length(1 << 14);

  std::vector<int64_t> first_;  // chunks before each array
  std::vector<int64_t> lengths_;
  int64_t size_ = 0;
};

}  // namespace tessera
