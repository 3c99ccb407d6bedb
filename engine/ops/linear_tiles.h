#pragma once

// How linear's CPU kernels cut the rows of x.

#include <algorithm>
#include <cstdint>

#include "engine/core/parallel.h"

namespace tessera::linear_tiles {

inline constexpr int64_t block = 12;  // rows whose sums a kernel holds in registers

// The rows that a tile has at least, but for the last one.
inline int64_t least_rows() { return chunk_length(block, block); }

// The rows of a tile at most.
inline int64_t most_rows() { return chunk_length(144, block); }

inline int64_t parts_of(int64_t n, int64_t most) { return (n + most - 1) / most; }

// `rows` cut into `parts` nearly equal parts of whole `unit`s.
inline int64_t part_of(int64_t rows, int64_t parts, int64_t unit = least_rows()) {
  return parts_of(std::max<int64_t>(1, parts_of(rows, parts)), unit) * unit;
}

// The rows of a tile: `rows` cut into equal parts of at most `most`, which the cache holds.
inline int64_t rows_a_tile(int64_t rows, int64_t most = most_rows(), int64_t unit = least_rows()) {
  return part_of(rows, std::max<int64_t>(1, parts_of(rows, most)), unit);
}

// The rows of a group: at most `most` equal groups, none much smaller than `least` rows.
inline int64_t rows_a_group(int64_t rows, int64_t least, int64_t most = 8, int64_t unit = least_rows()) {
  return part_of(rows, std::clamp<int64_t>(rows / least, 1, most), unit);
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
    const int64_t team = threads(), least = parts_of(rows, most_high);
    const int64_t down = least > team ? parts_of(least, team) * team : std::max<int64_t>(1, least);
    high = std::max<int64_t>(1, parts_of(parts_of(rows, down), unit)) * unit;
    const int64_t across = parts_of(8 * team, down);
    wide = std::max(chunk_length(2, panel), parts_of(parts_of(columns, across), panel)) * panel;
  }

  // Calls f(row, rows, column, columns) for every block, in parallel.
  template <class F> void each(const F& f) const {
    const int64_t across = parts_of(columns, wide);
    parallel_for(parts_of(rows, high) * across, 1, [&](int64_t b, int64_t) {
      const int64_t row = b / across * high, column = b % across * wide;
      f(row, std::min(high, rows - row), column, std::min(wide, columns - column));
    });
  }
};

// How the threads share the backward pass of a layer with a weight [out, in]. The rows are cut into groups,
// each with sums of its own of dweight and dbias, and a group's outputs into slabs. The sums depend on the
// sizes alone; the slabs, which the bits do not depend on, also depend on the number of threads:
// * A group is one slab where the groups are as many as keep the threads busy. A thread then makes all
//   gradients of its group, tile by tile in the cache.
// * Otherwise, and for a weight so large that there is one sum of it, a thread makes dz, dbias and dweight of
//   a slab; dx follows after every dz.
// * The groups of `few` rows are small and make no dweight, which follows after every dz, too.
struct BackwardShares {
  bool few;
  int64_t group, groups;  // rows of a group, and their number
  int64_t slab, slabs;    // outputs of a slab, and their number in a group

  // The rows are few if eight groups would have less than `least_group` each. Where they are so many that
  // further sums cost nothing beside them there are up to 32 groups, as far as their memory stays small.
  // Groups are whole `unit`s of rows: equal ones, for a thread with a smaller group would wait for the
  // others.
  BackwardShares(int64_t rows, int64_t in, int64_t out, int64_t least_group, int64_t unit = least_rows()) {
    constexpr int64_t usual_groups = 8, most_summed = 1 << 23;
    few = rows < usual_groups * least_group;
    const int64_t sum = std::max<int64_t>(1, out * in), fitting = most_summed / sum;
    const bool one_sum = fitting < usual_groups;
    const int64_t least = std::max(least_group, std::min(rows / usual_groups, chunk_length(2048)));
    group = few       ? rows_a_tile(rows_a_group(rows, least_rows(), usual_groups, unit), most_rows(), unit)
            : one_sum ? rows
                      : rows_a_group(rows, least, std::min<int64_t>(32, fitting), unit);
    groups = std::max<int64_t>(1, parts_of(rows, group));
    slab = few || (groups > 1 && busy(groups)) ? std::max<int64_t>(1, out) : rows_a_slab(out, groups);
    slabs = std::max<int64_t>(1, parts_of(out, slab));
  }

  // The sums of dweight.
  int64_t sums() const { return few ? 1 : groups; }
  // A group is whole if one thread makes all of its gradients.
  bool whole() const { return !few && groups > 1 && slabs == 1; }

  // Calls f(group, first row, rows, first output, outputs) for every slab, in parallel.
  template <class F> void each(int64_t rows, int64_t out, const F& f) const {
    parallel_for(groups * slabs, 1, [&](int64_t share, int64_t) {
      const int64_t row = share / slabs * group, from = share % slabs * slab;
      f(share / slabs, row, std::min(group, rows - row), from, std::min(slab, out - from));
    });
  }

  // The outputs of a slab, about four slabs for each thread. A slab narrower than 48 would pack the rows of x
  // for too few sums. Slabs are whole bands of 12 outputs, because the kernels may round what is left of
  // those differently, and whole tiles of 16 (AMX), which no slab then ends with a part of.
  static int64_t rows_a_slab(int64_t out, int64_t of_groups) {
    const int64_t unit = 4 * least_rows(), wanted = out * of_groups / (int64_t{4} * threads());
    return std::clamp<int64_t>(parts_of(wanted, unit), 1, 4) * unit;
  }

 private:
  // Equal shares keep the threads busy if these work for five sixths of the time that the shares take.
  static bool busy(int64_t shares) {
    const int64_t team = threads();
    return 6 * shares >= 5 * team * parts_of(shares, team);
  }
};

}  // namespace tessera::linear_tiles
