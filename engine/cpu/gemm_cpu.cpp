#include <algorithm>
#include <limits>

#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/bf16_panels.h"
#include "engine/cpu/blas.h"
#include "engine/cpu/each.h"
#include "engine/cpu/gemm.h"

namespace tessera {

namespace {

blasint blas_int(int64_t size) {
  check(size <= std::numeric_limits<blasint>::max(), "gemm: a size of ", size, " is too large for this BLAS");
  return static_cast<blasint>(size);
}

template <class T> auto op_of(const Factor<T>& factor) {
  return factor.transposed ? CblasTrans : CblasNoTrans;
}

void call_blas(const GemmSize& s, float alpha, const Factor<float>& a, const Factor<float>& b, float beta,
               float* c, int64_t ldc) {
  blas().sgemm(CblasRowMajor, op_of(a), op_of(b), blas_int(s.m), blas_int(s.n), blas_int(s.k), alpha, a.data,
               blas_int(a.stride), b.data, blas_int(b.stride), beta, c, blas_int(ldc));
}

void call_blas(const GemmSize& s, double alpha, const Factor<double>& a, const Factor<double>& b, double beta,
               double* c, int64_t ldc) {
  blas().dgemm(CblasRowMajor, op_of(a), op_of(b), blas_int(s.m), blas_int(s.n), blas_int(s.k), alpha, a.data,
               blas_int(a.stride), b.data, blas_int(b.stride), beta, c, blas_int(ldc));
}

constexpr int of_left = 20, of_right = 21, of_product = 22;  // keys of a thread's scratch memory

// A factor op(A) [rows, columns] of bf16 as floats without gaps, in this thread's scratch memory `which`.
template <int which> Factor<float> widened(int64_t rows, int64_t columns, const Factor<bf16>& from) {
  if (from.transposed) std::swap(rows, columns);
  float* const to = thread_scratch<float, which>(rows * columns);
  for (int64_t i = 0; i < rows; ++i) std::copy_n(from.data + i * from.stride, columns, to + i * columns);
  return {to, columns, from.transposed};
}

// C [m, n] = product + beta C; beta = 0 writes C without reading it. A row of the product has `stride`
// floats.
template <class C>
void add_product(int64_t m, int64_t n, const float* product, int64_t stride, float beta, C* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i, product += stride, c += ldc)
    write_each(0, n, c, false,
               [=](int64_t j) { return beta == 0 ? product[j] : product[j] + beta * Wide<C>(c[j]); });
}

// gemm() of bf16 by BLAS, which has products of floats.
void multiply_widened(const GemmSize& s, float alpha, const Factor<bf16>& a, const Factor<bf16>& b,
                      float beta, float* c, int64_t ldc) {
  call_blas(s, alpha, widened<of_left>(s.m, s.k, a), widened<of_right>(s.k, s.n, b), beta, c, ldc);
}

void multiply_widened(const GemmSize& s, float alpha, const Factor<bf16>& a, const Factor<bf16>& b,
                      float beta, bf16* c, int64_t ldc) {
  float* const product = thread_scratch<float, of_product>(s.m * s.n);
  multiply_widened(s, alpha, a, b, 0, product, s.n);
  add_product(s.m, s.n, product, s.n, beta, c, ldc);
}

// gemm() of bf16 by the processor's instructions for it.
template <class C>
void multiply_pairs(const Bf16Kernels& kernels, const GemmSize& s, float alpha, const Factor<bf16>& a,
                    const Factor<bf16>& b, float beta, C* c, int64_t ldc) {
  bf16* const panels = thread_scratch<bf16, of_right>(bf16_packed_elements(s.k, s.n));
  pack_bf16_panels(kernels, s.k, s.n, b, panels);
  const LeftPairs left = left_factor<of_left>(kernels, s.m, s.k, a);
  const int64_t pairs = pairs_of(s.k);
  const bf16* output = nullptr;
  if constexpr (std::is_same_v<C, bf16>) output = c;
  alignas(64) Bf16Block block;
  const auto use = [&](int64_t i, int64_t rows, int64_t j, int64_t columns, const LeftPairs& part,
                       const bf16* panel) {
    C* const to = c + i * ldc + j;
    if constexpr (std::is_same_v<C, bf16>)
      if (alpha == 1 && (beta == 0 || beta == 1))
        return multiply_bf16_block(kernels, rows, columns, pairs, part, panel, {nullptr, 0}, beta == 1, to,
                                   ldc, block.data());
    kernels.multiply(rows, whole_bf16_vectors(columns), pairs, part, {panel, 2 * bf16_panel}, alpha,
                     {nullptr, 0}, {block.data(), bf16_panel});
    add_product(rows, columns, block.data(), bf16_panel, beta, to, ldc);
  };
  for_bf16_blocks(s.m, s.n, s.k, left, panels, {output}, ldc, use);
}

// C *= beta: a product of depth 0.
template <class C> void scale(int64_t m, int64_t n, Wide<C> beta, C* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      C& value = c[i * ldc + j];
      value = beta == 0 ? C(0.0f) : C(beta * Wide<C>(value));
    }
}

constexpr int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

constexpr int64_t pieces(int64_t n, int64_t size) { return size == 0 ? 0 : (n + size - 1) / size; }

// The sizes of the tiles that a product [m, k] x [k, n] is divided into: small enough to keep all threads
// busy and a tile in the cache, large enough to be worth BLAS's packing.
struct Tiling {
  int64_t rows, columns, depth;
};

Tiling tiling(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t enough = 16, largest = 1 << 26;                            // tiles; MACs a tile
  const int64_t multiple = chunk_length(8), smallest = chunk_length(1 << 20);  // of a size; MACs a tile
  constexpr int64_t most_summed = 1 << 22;  // elements of the parts that a cut depth leaves to be summed
  Tiling tile{m, n, k};
  while (true) {
    const int64_t macs = tile.rows * tile.columns * tile.depth;
    const int64_t tiles = pieces(m, tile.rows) * pieces(n, tile.columns) * pieces(k, tile.depth);
    if (macs < 2 * smallest || (tiles >= enough && macs <= largest)) return tile;
    const bool may_cut_depth = 2 * pieces(k, tile.depth) * m * n <= most_summed;
    int64_t& side = tile.rows >= tile.columns ? tile.rows : tile.columns;
    int64_t& longest = may_cut_depth && tile.depth > side ? tile.depth : side;
    const int64_t half = round_up((longest + 1) / 2, multiple);
    if (half >= longest) return tile;
    longest = half;
  }
}

// C = beta C + the sum over the parts, in their order. parts [count, m, n]
template <class C>
void add_parts(int64_t count, int64_t m, int64_t n, const Wide<C>* parts, Wide<C> beta, C* c, int64_t ldc) {
  parallel_rows(m, n, [=](int64_t i) {
    C* row = c + i * ldc;
    write_each(0, n, row, false, [=](int64_t j) {
      Wide<C> sum = parts[i * n + j];
      for (int64_t p = 1; p < count; ++p) sum += parts[(p * m + i) * n + j];
      return beta == 0 ? sum : sum + beta * Wide<C>(row[j]);
    });
  });
}

}  // namespace

template <class T, class C>
void gemm(const GemmSize& size, Wide<T> alpha, Factor<T> a, Factor<T> b, Wide<T> beta, C* c, int64_t ldc) {
  const int64_t m = size.m, n = size.n;
  if (m == 0 || n == 0) return;
  if (size.k == 0) return scale(m, n, Wide<C>(beta), c, ldc);
  if constexpr (!std::is_same_v<T, bf16>) {
    call_blas(size, alpha, a, b, beta, c, ldc);
  } else if (const Bf16Kernels* kernels = bf16_kernels()) {
    multiply_pairs(*kernels, size, alpha, a, b, beta, c, ldc);
  } else {
    multiply_widened(size, alpha, a, b, beta, c, ldc);
  }
}

template <class T> void load_gemm() {
  if (!std::is_same_v<T, bf16> || !bf16_kernels()) blas();
}

template <class T, class C>
void parallel_gemm(const GemmSize& size, Wide<T> alpha, Factor<T> a, Factor<T> b, Wide<T> beta, C* c,
                   int64_t ldc) {
  const auto [m, n, k] = size;
  if (m == 0 || n == 0 || k == 0) {
    if (!DryRun::active()) gemm<T>(size, alpha, a, b, beta, c, ldc);
    return;
  }
  const Tiling tile = tiling(m, n, k);
  const int64_t down = pieces(m, tile.rows), across = pieces(n, tile.columns), deep = pieces(k, tile.depth);
  // multiply(part of the depth, row, column, size, factors) for every tile
  const auto for_tiles = [&, m = m, n = n, k = k](const auto& multiply) {
    if (DryRun::active()) return;
    load_gemm<T>();
    parallel_for(down * across * deep, 1, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) {
        const int64_t i = t / across % down * tile.rows, j = t % across * tile.columns;
        const int64_t part = t / (across * down), p = part * tile.depth;
        const GemmSize own{std::min(tile.rows, m - i), std::min(tile.columns, n - j),
                           std::min(tile.depth, k - p)};
        multiply(part, i, j, own, a.from(i, p), b.from(p, j));
      }
    });
  };
  if (deep == 1)
    return for_tiles(
        [&](int64_t, int64_t i, int64_t j, const GemmSize& own, Factor<T> a_tile, Factor<T> b_tile) {
          gemm<T>(own, alpha, a_tile, b_tile, beta, c + i * ldc + j, ldc);
        });
  const Workspace<Wide<T>> parts(deep * m * n);
  for_tiles([&, m = m, n = n](int64_t part, int64_t i, int64_t j, const GemmSize& own, Factor<T> a_tile,
                              Factor<T> b_tile) {
    gemm<T>(own, alpha, a_tile, b_tile, Wide<T>(0), parts.data() + (part * m + i) * n + j, n);
  });
  if (!DryRun::active()) add_parts(deep, m, n, parts.data(), beta, c, ldc);
}

std::string blas_kernels() { return "OpenBLAS " + blas().core; }

#define TESSERA_INSTANTIATE(T, C)                                                           \
  template void gemm(const GemmSize&, Wide<T>, Factor<T>, Factor<T>, Wide<T>, C*, int64_t); \
  template void parallel_gemm(const GemmSize&, Wide<T>, Factor<T>, Factor<T>, Wide<T>, C*, int64_t);
TESSERA_INSTANTIATE(float, float)
TESSERA_INSTANTIATE(double, double)
TESSERA_INSTANTIATE(bf16, float)
TESSERA_INSTANTIATE(bf16, bf16)
#undef TESSERA_INSTANTIATE
TESSERA_FOR_FLOATS(load_gemm)

}  // namespace tessera
