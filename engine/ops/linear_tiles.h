#pragma once

// How linear's CPU kernels cut the rows of x.

#include <algorithm>
#include <cstdint>

#include "engine/core/parallel.h"

namespace tessera::linear_tiles {

inline constexpr int64_t block = 12;  // rows whose sums a kernel holds in registers

// The rows that a tile has at least, but for the last one.
inline int64_t least_rows() { return chunk_length(block, block); }

inline int64_t whole_blocks(int64_t rows) {
  const int64_t least = least_rows();
  return (rows + least - 1) / least * least;
}

// `rows` cut into `parts` nearly equal parts of whole blocks.
inline int64_t part_of(int64_t rows, int64_t parts) {
  return whole_blocks(std::max<int64_t>(1, (rows + parts - 1) / parts));
}

// The rows of a tile: `rows` cut into equal parts of at most `most`, which the cache holds.
inline int64_t rows_a_tile(int64_t rows, int64_t most = chunk_length(144, block)) {
  return part_of(rows, std::max<int64_t>(1, (rows + most - 1) / most));
}

// The rows of a group: enough equal groups to keep the threads busy, none much smaller than `least` rows.
inline int64_t rows_a_group(int64_t rows, int64_t least) {
  return part_of(rows, std::clamp<int64_t>(rows / least, 1, 8));
}

// How the threads share a product C [rows, columns]. Its rows are cut into nearly equal blocks: of at most
// `most_high` rows, rounded up to whole `unit`s, and as many for each thread where there are more blocks than
// threads. Blocks that are too few to keep the threads busy are cut by columns too, into whole panels of
// `panel` columns. (Lower blocks would keep them busy as well, but each would read all of the right factor
// for few rows.) The bits do not depend on the blocks.
struct Blocks {
  int64_t rows, columns, high, wide;

  Blocks(int64_t c_rows, int64_t c_columns, int64_t most_high, int64_t unit, int64_t panel)
      : rows(c_rows), columns(c_columns) {
    const int64_t team = threads(), least = parts(rows, most_high);
    const int64_t down = least > team ? parts(least, team) * team : std::max<int64_t>(1, least);
    high = std::max<int64_t>(1, parts(parts(rows, down), unit)) * unit;
    const int64_t across = parts(8 * team, down);
    wide = std::max(chunk_length(2, panel), parts(parts(columns, across), panel)) * panel;
  }

  // Calls f(row, rows, column, columns) for every block, in parallel.
  template <class F> void each(const F& f) const {
    const int64_t across = parts(columns, wide);
    parallel_for(parts(rows, high) * across, 1, [&](int64_t b, int64_t) {
      const int64_t row = b / across * high, column = b % across * wide;
      f(row, std::min(high, rows - row), column, std::min(wide, columns - column));
    });
  }

 private:
  static int64_t parts(int64_t n, int64_t most) { return (n + most - 1) / most; }
};

// How the gradient of a weight [out, in] is summed: by groups of rows, each with a sum of its own; or, where
// the rows are too few to keep the threads busy or the weight is large, over all rows, after every dz: by
// slabs of its outputs or, for few rows in linear_cpu.cpp, by Blocks.
struct WeightSums {
  bool few, by_groups;
  int64_t group, groups;  // rows of a group, and their number; the groups also sum the bias's gradient
  int64_t slab;           // outputs of a slab; the bits do not depend on it

  // A group has at least `least_group` rows.
  WeightSums(int64_t rows, int64_t in, int64_t out, int64_t least_group) {
    constexpr int64_t most_groups = 8, most_summed = 1 << 23;
    const int64_t least_slab = 2 * least_rows();
    few = rows < most_groups * least_group;
    by_groups = !few && most_groups * out * in <= most_summed;
    group = by_groups ? rows_a_group(rows, least_group) : rows_a_tile(rows_a_group(rows, least_rows()));
    groups = std::max<int64_t>(1, (rows + group - 1) / group);
    slab = std::clamp(out / threads() / 4, least_slab, 8 * least_slab);
  }

  int64_t sums() const { return by_groups ? groups : 1; }
};

}  // namespace tessera::linear_tiles
