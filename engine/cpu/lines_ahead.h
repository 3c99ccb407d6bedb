#pragma once

// LinesAhead asks for cache lines that are needed soon, a few at a time. A core has some two dozen lines on
// their way and stops at a prefetch beyond these: hundreds in a row take as long as the lines themselves.

#include <algorithm>
#include <array>
#include <cstdint>

namespace tessera {

// Rows in memory whose lines ask() prefetches, the same number of rows of every set at each call.
class LinesAhead {
 public:
  // Adds a set of `count` rows of n numbers, `stride` numbers apart; null adds none. There are at most 7.
  template <class T> void add(const T* rows, int64_t count, int64_t stride, int64_t n) {
    constexpr auto size = static_cast<int64_t>(sizeof(T));
    if (rows)
      sets_[static_cast<size_t>(used_++)] = {reinterpret_cast<const char*>(rows), stride * size, n * size,
                                             count};
  }

  // Adds n numbers that follow one another, line by line.
  template <class T> void add_all(const T* from, int64_t n) {
    constexpr int64_t line = 64 / sizeof(T);
    add(from, n / line, line, line);
  }

  // Spreads all rows over so many calls of ask().
  void spread(int64_t calls) {
    int64_t most = 0;
    for (int64_t i = 0; i < used_; ++i) most = std::max(most, sets_[static_cast<size_t>(i)].left);
    rows_a_call_ = (most + calls - 1) / std::max<int64_t>(1, calls);
  }

  // The function must be inlined: g++ takes one that only prefetches for one without effect, and drops it.
  __attribute__((always_inline)) inline void ask() {
    for (int64_t i = 0; i < used_; ++i) {
      Set& set = sets_[static_cast<size_t>(i)];
      const int64_t rows = std::min(rows_a_call_, set.left), stride = set.stride, bytes = set.bytes;
      const char* row = set.next;
      for (int64_t r = 0; r < rows; ++r, row += stride)
        for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
      set.next = row;
      set.left -= rows;
    }
  }

 private:
  struct Set {
    const char* next;
    int64_t stride, bytes;  // from one row to the next, and of a row
    int64_t left;           // rows
  };

  std::array<Set, 7> sets_;  // what a head reads and writes at most
  int64_t used_ = 0, rows_a_call_ = 0;
};

}  // namespace tessera
