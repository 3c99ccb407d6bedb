#pragma once

// Products whose sums are long and whose result is small, as the gradients of weights are: [192, 8320] x
// [8320, 192] makes four tiles of 128 x 128, on a GPU of a hundred multiprocessors. They are cut along the
// sum into parts, which are computed side by side in the type of the sums and then added in their order.

#include <algorithm>

#include "engine/cuda/blas.h"
#include "engine/cuda/launch.h"
#include "engine/cuda/reduce.h"

namespace tessera {

// The sizes alone fix the cut, and so the bits.
struct DepthCut {
  int64_t parts = 1, depth = 0;  // parts of `depth`, and a last one of what is left of k

  explicit DepthCut(const MatrixProduct& p) : depth(p.k) {
    constexpr int64_t tile = 128, wanted_tiles = 128, least_depth = 512;
    const int64_t tiles = ((p.m + tile - 1) / tile) * ((p.n + tile - 1) / tile);
    parts = std::clamp<int64_t>(wanted_tiles / std::max<int64_t>(tiles, 1), 1,
                                std::max<int64_t>(1, p.k / least_depth));
    if (parts > 1) depth = p.k / parts / 16 * 16;  // rows of parts begin where 16 bytes do
  }
  int64_t left(int64_t k) const { return k - parts * depth; }
};

// c = op(a) op(b), or += if add, of one product whose c has no gaps. An object holds the parts, because work
// on a Branch needs memory that outlives it.
template <class T> class DeepProduct {
 public:
  using W = Wide<T>;

  // `wanted`: whether it will be run at all.
  DeepProduct(const MatrixProduct& product, bool wanted)
      : product_(product),
        cut_(product),
        parts_(wanted && cut_.parts > 1 ? (cut_.parts + 1) * product.m * product.n : 0) {}

  void run(const T* a, const T* b, T* c, bool add) const {
    if (cut_.parts == 1 || product_.m * product_.n == 0) return multiply(product_, a, b, c, add);
    MatrixProduct part = product_;
    part.k = cut_.depth;
    part.count = cut_.parts;
    part.a_step = cut_.depth * (product_.transpose_a ? product_.lda : 1);
    part.b_step = cut_.depth * (product_.transpose_b ? 1 : product_.ldb);
    part.c_step = product_.m * product_.n;
    multiply_wide(part, a, b, parts_.data());
    const bool rest = cut_.left(product_.k) > 0;
    if (rest) {
      a += cut_.parts * part.a_step, b += cut_.parts * part.b_step;
      W* const last = parts_.data() + cut_.parts * part.c_step;
      part.k = cut_.left(product_.k);
      part.count = 1;
      multiply_wide(part, a, b, last);
    }
    sum_parts(part.c_step, cut_.parts + (rest ? 1 : 0), parts_.data(), W(1), c, add);
  }

 private:
  MatrixProduct product_;
  DepthCut cut_;
  Scratch<W> parts_;
};

}  // namespace tessera
