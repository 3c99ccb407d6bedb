#pragma once

// The products of attention's bf16 kernels for the CPU, and the factors that tokens become.

#include <algorithm>

#include "engine/cpu/bf16_gemm.h"
#include "engine/ops/attention/panels.h"

namespace tessera {

// The tokens of one head: `count` rows of d numbers.
struct Tokens {
  const bf16* data;
  int64_t stride, count;
};

// Keys or values as the right factor of scores. Kernels that keep rows of scores in registers take a key that
// follows whole vectors of them by itself: the pairs end before it, and it lies at `last`. Otherwise that is
// null.
struct ScoreColumns {
  RightPairs pairs;
  const bf16* last;
};

// The products of one head.
class HeadProducts {
 public:
  HeadProducts(const Bf16Kernels& kernels, int64_t d) : kernels_(kernels), d_(d) {}

  // x [count, d] as a right factor of depth `count`.
  RightPairs right(const Tokens& x, Panel<bf16>& panel) const {
    const Rows<bf16> to = panel.fit(pairs_of(x.count), 2 * width());
    kernels_.interleave(x.count, d_, x.data, x.stride, to.data, to.row);
    return {to.data, to.row};
  }

  // x^T [d, count] as a right factor of depth d.
  RightPairs right_of_transposed(const Tokens& x, Panel<bf16>& panel) const {
    const Rows<bf16> to = panel.fit(pairs_of(d_), 2 * whole_bf16_vectors(x.count));
    kernels_.interleave_transposed(d_, x.count, x.data, x.stride, to.data, to.row);
    return {to.data, to.row};
  }

  // x^T [d, count] as the right factor of scores.
  ScoreColumns columns(const Tokens& x, bool in_registers, Panel<bf16>& panel) const {
    if (!in_registers || !one_key_follows(x.count)) return {right_of_transposed(x, panel), nullptr};
    const int64_t last = x.count - 1;
    return {right_of_transposed({x.data, x.stride, last}, panel), x.data + last * x.stride};
  }

  // x [count, d] as a left factor of depth d: where it lies, if its rows are whole pairs.
  LeftPairs left(const Tokens& x, Panel<bf16>& panel) const {
    if (d_ % 2 == 0) return {x.data, x.stride, 2};
    const Rows<bf16> to = panel.fit(x.count, d_ + 1);
    for (int64_t i = 0; i < x.count; ++i) {
      std::copy_n(x.data + i * x.stride, d_, to.data + i * to.row);
      to.data[i * to.row + d_] = bf16(0.0f);
    }
    return {to.data, to.row, 2};
  }

  // The transpose of x [count, columns] as a left factor of depth `count`.
  LeftPairs left_of_transposed(int64_t count, int64_t columns, Rows<bf16> x, Panel<bf16>& panel) const {
    bf16* memory = panel.fit(1, left_elements(count, columns)).data;
    return kernels_.left_of_transposed(count, columns, x.data, x.row, memory);
  }

  // s [count, columns] = start + factor a b, of depth d
  void scores(int64_t count, int64_t columns, const LeftPairs& a, RightPairs b, float factor, FloatRows start,
              Rows<float> s) const {
    kernels_.multiply(count, columns, pairs_of(d_), a, b, factor, start, {s.data, s.row});
  }

  // y [rows, d] = start + a b of the given depth
  void tokens(int64_t rows, int64_t depth, const LeftPairs& a, RightPairs b, FloatRows start,
              Rows<float> y) const {
    kernels_.multiply(rows, width(), pairs_of(depth), a, b, 1, start, {y.data, y.row});
  }

  // The rows of a head, each times its factor (or all times one, `step` 0), rounded to where they belong.
  void store(int64_t rows, Rows<const float> from, const float* factors, int64_t step, bool add, bf16* to,
             int64_t stride) const {
    if (to) kernels_.store(rows, d_, {from.data, from.row}, factors, step, add, to, stride);
  }

  int64_t width() const { return whole_bf16_vectors(d_); }  // columns of d sums

 private:
  const Bf16Kernels& kernels_;
  int64_t d_;
};

}  // namespace tessera
