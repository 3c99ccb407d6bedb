#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/core/per_thread.h"
#include "engine/core/storage.h"
#include "engine/cpu/blas.h"
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

// A factor op(A) [rows, columns] of bf16 as floats without gaps, in this thread's scratch memory `which`.
Factor<float> widened(int which, int64_t rows, int64_t columns, const Factor<bf16>& from) {
  static const PerThread<std::array<std::vector<float>, 2>> scratch;
  if (from.transposed) std::swap(rows, columns);
  std::vector<float>& to = scratch.of_this_thread()[static_cast<size_t>(which)];
  to.resize(std::max(to.size(), static_cast<size_t>(rows * columns)));
  for (int64_t i = 0; i < rows; ++i)
    std::copy_n(from.data + i * from.stride, columns, to.data() + i * columns);
  return {to.data(), columns, from.transposed};
}

void multiply_bf16(const GemmSize& s, float alpha, const Factor<bf16>& a, const Factor<bf16>& b, float beta,
                   float* c, int64_t ldc) {
  call_blas(s, alpha, widened(0, s.m, s.k, a), widened(1, s.k, s.n, b), beta, c, ldc);
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
template <class T>
void add_parts(int64_t count, int64_t m, int64_t n, const Wide<T>* parts, Wide<T> beta, T* c, int64_t ldc) {
  const int64_t rows_a_chunk = std::max<int64_t>(1, chunk_length(1 << 14) / n);
  parallel_for(m, rows_a_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* row = c + i * ldc;
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) {
        Wide<T> sum = parts[i * n + j];
        for (int64_t p = 1; p < count; ++p) sum += parts[(p * m + i) * n + j];
        row[j] = T(beta == 0 ? sum : sum + beta * Wide<T>(row[j]));
      }
    }
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
  } else if constexpr (std::is_same_v<C, float>) {
    multiply_bf16(size, alpha, a, b, beta, c, ldc);
  } else {
    static const PerThread<std::vector<float>> products;
    std::vector<float>& product = products.of_this_thread();
    product.resize(std::max(product.size(), static_cast<size_t>(m * n)));
    multiply_bf16(size, alpha, a, b, 0, product.data(), n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const float value = product[static_cast<size_t>(i * n + j)];
        c[i * ldc + j] = bf16(beta == 0 ? value : value + beta * float(c[i * ldc + j]));
      }
  }
}

template <class T>
void parallel_gemm(const GemmSize& size, Wide<T> alpha, Factor<T> a, Factor<T> b, Wide<T> beta, T* c,
                   int64_t ldc) {
  const auto [m, n, k] = size;
  if (m == 0 || n == 0 || k == 0) return gemm<T>(size, alpha, a, b, beta, c, ldc);
  blas();  // loaded before the threads need it
  const Tiling tile = tiling(m, n, k);
  const int64_t down = pieces(m, tile.rows), across = pieces(n, tile.columns), deep = pieces(k, tile.depth);
  // multiply(part of the depth, row, column, size, factors) for every tile
  const auto for_tiles = [&, m = m, n = n, k = k](const auto& multiply) {
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
  const Storage memory(Device::cpu, static_cast<size_t>(deep * m * n) * sizeof(Wide<T>));
  Wide<T>* parts = static_cast<Wide<T>*>(memory.data());
  for_tiles([&, m = m, n = n](int64_t part, int64_t i, int64_t j, const GemmSize& own, Factor<T> a_tile,
                              Factor<T> b_tile) {
    gemm<T>(own, alpha, a_tile, b_tile, Wide<T>(0), parts + (part * m + i) * n + j, n);
  });
  add_parts(deep, m, n, parts, beta, c, ldc);
}

std::string blas_kernels() { return "OpenBLAS " + blas().core; }

template void gemm(const GemmSize&, float, Factor<float>, Factor<float>, float, float*, int64_t);
template void gemm(const GemmSize&, double, Factor<double>, Factor<double>, double, double*, int64_t);
template void gemm(const GemmSize&, float, Factor<bf16>, Factor<bf16>, float, bf16*, int64_t);
template void gemm(const GemmSize&, float, Factor<bf16>, Factor<bf16>, float, float*, int64_t);
TESSERA_FOR_FLOATS(parallel_gemm)

}  // namespace tessera
