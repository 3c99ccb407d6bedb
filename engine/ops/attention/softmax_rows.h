#pragma once

// Softmax of rows of scores in float and double, forward and backward, in place. The columns are whole
// vectors.

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/cpu/fast_math.h"
#include "engine/cpu/simd.h"
#include "engine/cpu/small_gemm.h"
#include "engine/cpu/vector_math.h"

namespace tessera {

// The maxima of a row, lane by lane.
template <class W> Vector<W> maxima_of_row(int64_t columns, const W* row) {
  Vector<W> most = load_vector(row);
  for (int64_t j = lanes<W>; j < columns; j += lanes<W>) most = largest<W>(most, load_vector(row + j));
  return most;
}

// row = exp(row - shift). Returns its sums, lane by lane.
template <class W> Vector<W> exponentials_of_row(int64_t columns, W* row, W shift) {
  Vector<W> sum{};
  for (int64_t j = 0; j < columns; j += lanes<W>) {
    const Vector<W> e = exp_of_differences(load_vector(row + j) - shift);
    store_vector(row + j, e);
    sum += e;
  }
  return sum;
}

// The scores of the last key and their gradients, apart from those of the others: a key that follows whole
// vectors of keys, as a class token's does, would take a vector in each row. Null where the rows hold all
// keys.
template <class W> struct LastKey {
  W *s = nullptr, *ds = nullptr;  // [rows]
  int64_t column = 0;             // where they belong in the rows
};

// s[., column] = from [rows]
template <class W> void put_column(int64_t rows, const W* from, int64_t column, Rows<W> s) {
  for (int64_t r = 0; r < rows; ++r) s.data[r * s.row + column] = from[r];
}

// to[r] and to[r + 1] = both; an odd last row has no second.
template <class W> void store_two(int64_t r, int64_t rows, const std::array<W, 2>& both, W* to) {
  to[r] = both[0];
  if (r + 1 < rows) to[r + 1] = both[1];
}

// Each function below makes one pass over all rows before the next begins, so that no row waits for the sum
// of the row before it, and joins the lanes of two rows at a time.

// to = factor times the inner product of each row of a with b.
template <class W>
void inner_products(int64_t rows, int64_t columns, Rows<const W> a, const W* b, W factor, W* to) {
  const auto of_row = [=](int64_t r) {
    Vector<W> sum{};
    for (int64_t j = 0; j < columns; j += lanes<W>)
      sum += load_vector(a.data + r * a.row + j) * load_vector(b + j);
    return factor * sum;
  };
  for (int64_t r = 0; r < rows; r += 2)
    store_two(r, rows, sums_of_lanes<W>(of_row(r), of_row(std::min(r + 1, rows - 1))), to);
}

template <class W>
void row_maxima(int64_t rows, int64_t columns, Rows<W> s, const LastKey<W>& last, W* maxima) {
  const auto of_row = [=](int64_t r) { return maxima_of_row(columns, s.data + r * s.row); };
  for (int64_t r = 0; r < rows; r += 2)
    store_two(r, rows, largest_of_lanes<W>(of_row(r), of_row(std::min(r + 1, rows - 1))), maxima);
  for (int64_t r = 0; last.s && r < rows; ++r) maxima[r] = std::max(maxima[r], last.s[r]);
}

// s = exp(s - shift of the row), and the sums of the rows.
template <class W>
void exponentials(int64_t rows, int64_t columns, Rows<W> s, const LastKey<W>& last, const W* shifts,
                  W* sums) {
  const auto of_row = [=](int64_t r) { return exponentials_of_row(columns, s.data + r * s.row, shifts[r]); };
  for (int64_t r = 0; r < rows; r += 2) {
    const Vector<W> first = of_row(r), second = r + 1 < rows ? of_row(r + 1) : first;
    store_two(r, rows, sums_of_lanes<W>(first, second), sums);
  }
  if (!last.s) return;
#pragma omp simd
  for (int64_t r = 0; r < rows; ++r) {
    last.s[r] = fast_exp(last.s[r] - shifts[r]);
    sums[r] += last.s[r];
  }
  put_column(rows, last.s, last.column, s);
}

// P = exp(s - lse) of a row, not yet divided by its sum, overwrites p. Returns the sums of P and of P dP,
// lane by lane.
template <class W> std::array<Vector<W>, 2> powers_of_row(int64_t columns, W* p, const W* dp, W lse) {
  Vector<W> mass{}, sum{};
  for (int64_t j = 0; j < columns; j += lanes<W>) {
    const Vector<W> power = exp_of_differences(load_vector(p + j) - lse);
    store_vector(p + j, power);
    mass += power;
    sum += power * load_vector(dp + j);
  }
  return {mass, sum};
}

// The function does the same for the last key, whose numbers join the sums of all rows.
template <class W>
void add_last_powers(int64_t rows, const LastKey<W>& last, const W* lse, W* masses, W* sums) {
#pragma omp simd
  for (int64_t r = 0; r < rows; ++r) {
    last.s[r] = fast_exp(last.s[r] - lse[r]);
    masses[r] += last.s[r];
    sums[r] += last.s[r] * last.ds[r];
  }
}

// P and ds of the last key, in their column.
template <class W>
void put_last_gradients(int64_t rows, const LastKey<W>& last, const W* shares, const W* means, Rows<W> p,
                        Rows<W> ds) {
#pragma omp simd
  for (int64_t r = 0; r < rows; ++r) {
    last.s[r] *= shares[r];
    last.ds[r] = last.s[r] * (last.ds[r] - means[r]);
  }
  put_column(rows, last.s, last.column, p);
  put_column(rows, last.ds, last.column, ds);
}

// P = exp(s - lse) overwrites s; ds = P (dP - rowsum(P dP)) overwrites dP, which is passed as ds. (rowsum(P
// dP) = dy . y.) P is divided by its sum, which the rounding of s and lse leaves slightly off 1: otherwise ds
// would not sum to 0 over a row, and gradients that sum it over many rows (the learned scale's, the prior's)
// would be off. `means` and `shares` [rows] are memory for these sums.
template <class W>
void softmax_backward(int64_t rows, int64_t columns, Rows<W> s, Rows<W> ds, const LastKey<W>& last,
                      const W* lse, W* means, W* shares) {
  const auto of_row = [=](int64_t r) {
    return powers_of_row(columns, s.data + r * s.row, ds.data + r * ds.row, lse[r]);
  };
  for (int64_t r = 0; r < rows; r += 2) {
    const std::array first = of_row(r), second = r + 1 < rows ? of_row(r + 1) : first;
    store_two(r, rows, sums_of_lanes<W>(first[0], second[0]), shares);
    store_two(r, rows, sums_of_lanes<W>(first[1], second[1]), means);
  }
  if (last.s) add_last_powers(rows, last, lse, shares, means);
#pragma omp simd
  for (int64_t r = 0; r < rows; ++r) {
    shares[r] = 1 / shares[r];
    means[r] *= shares[r];
  }
  for (int64_t r = 0; r < rows; ++r) {
    W *p_row = s.data + r * s.row, *ds_row = ds.data + r * ds.row;
    for (int64_t j = 0; j < columns; j += lanes<W>) {
      const Vector<W> p = load_vector(p_row + j) * shares[r];
      store_vector(p_row + j, p);
      store_vector(ds_row + j, p * (load_vector(ds_row + j) - means[r]));
    }
  }
  if (last.s) put_last_gradients(rows, last, shares, means, s, ds);
}

}  // namespace tessera
