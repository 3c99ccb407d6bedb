#pragma once

// The bands of pixels (conv_bands.h) that the products in bf16 read: channels in pairs, some rows of windows
// at a time.

#include <algorithm>
#include <cstdint>

#include "engine/ops/conv_bands.h"
#include "engine/ops/conv_parts.h"

namespace tessera {

// The length of a window, rounded up to whole vectors.
inline int64_t bf16_row_length(const ConvSize& s) { return whole_bf16_vectors(s.window() * s.in); }

inline int64_t bf16_rows_at_once(const ConvSize& s) {
  return rows_at_once(s, bf16_row_length(s) * int64_t{sizeof(bf16)});
}

// Calls f(first row, last row, windows) for the image's rows of windows, some at a time.
template <class F> void for_bf16_rows(const ConvSize& s, F&& f) {
  const int64_t step = bf16_rows_at_once(s);
  for (int64_t i = 0; i < s.out_h; i += step) {
    const int64_t last = std::min(s.out_h, i + step);
    f(i, last, (last - i) * s.out_w);
  }
}

inline BandSize pair_band(const ConvSize& s) { return BandSize(s, 2); }

// Points to the pixels that the windows of the rows [first, last) read, which are copied into the thread's
// scratch memory if they must be (BandSize).
inline const bf16* pairs_of_band(const ConvSize& s, const BandSize& size, const bf16* image, int64_t first,
                                 int64_t last) {
  constexpr int of_band = 20;  // key of that memory
  return band<bf16, of_band>(s, size, image, first, last, bf16_rows_at_once(s));
}

// Prefetches the n numbers from here on, or one of `parts` parts of them, while the processor multiplies. The
// next band's copy reads them, and would wait for them otherwise.
inline void prefetch(const bf16* from, int64_t n, int64_t part = 0, int64_t parts = 1) {
  constexpr int64_t line = 32, second_cache = 2;
  for (int64_t i = n * part / parts; i < n * (part + 1) / parts; i += line)
    __builtin_prefetch(from + i, 0, second_cache);
}

}  // namespace tessera
