#include <cblas.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/core/storage.h"
#include "engine/cpu/gemm.h"

namespace tessera {

namespace {

// Once, before the first product: TBB's threads call OpenBLAS, each for a tile of its own.
void prepare_blas() {
  [[maybe_unused]] static const bool ready = [] {
    openblas_set_num_threads(1);
    return true;
  }();
}

blasint blas_int(int64_t size) {
  check(size <= std::numeric_limits<blasint>::max(), "gemm: a size of ", size, " is too large for this BLAS");
  return static_cast<blasint>(size);
}

void call_blas(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
               int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  cblas_sgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans,
              blas_int(m), blas_int(n), blas_int(k), alpha, a, blas_int(lda), b, blas_int(ldb), beta, c,
              blas_int(ldc));
}

void call_blas(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a,
               int64_t lda, const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  cblas_dgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans,
              blas_int(m), blas_int(n), blas_int(k), alpha, a, blas_int(lda), b, blas_int(ldb), beta, c,
              blas_int(ldc));
}

// A [rows, columns] block of bf16 as floats without gaps, in this thread's scratch memory `which`.
const float* widened(int which, int64_t rows, int64_t columns, const bf16* from, int64_t stride) {
  thread_local std::array<std::vector<float>, 2> scratch;
  std::vector<float>& to = scratch[static_cast<size_t>(which)];
  to.resize(std::max(to.size(), static_cast<size_t>(rows * columns)));
  for (int64_t i = 0; i < rows; ++i) std::copy_n(from + i * stride, columns, to.data() + i * columns);
  return to.data();
}

void multiply_bf16(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const bf16* a,
                   int64_t lda, const bf16* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  const int64_t a_columns = trans_a ? m : k, b_columns = trans_b ? k : n;
  call_blas(trans_a, trans_b, m, n, k, alpha, widened(0, trans_a ? k : m, a_columns, a, lda), a_columns,
            widened(1, trans_b ? n : k, b_columns, b, ldb), b_columns, beta, c, ldc);
}

// C *= beta, which is all that is left of a product of depth 0.
template <class C> void scale(int64_t m, int64_t n, Wide<C> beta, C* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      C& value = c[i * ldc + j];
      value = beta == 0 ? C(0.0f) : C(beta * Wide<C>(value));
    }
}

constexpr int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

constexpr int64_t pieces(int64_t n, int64_t size) { return size == 0 ? 0 : (n + size - 1) / size; }

// The sizes of the tiles that a product [m, k] x [k, n] is cut into: small enough to keep all threads busy
// and a tile in the cache, large enough to pay for BLAS's packing.
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
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Wide<T> alpha, const T* a, int64_t lda,
          const T* b, int64_t ldb, Wide<T> beta, C* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0) return scale(m, n, Wide<C>(beta), c, ldc);
  prepare_blas();
  if constexpr (!std::is_same_v<T, bf16>) {
    call_blas(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  } else if constexpr (std::is_same_v<C, float>) {
    multiply_bf16(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  } else {
    thread_local std::vector<float> product;
    product.resize(std::max(product.size(), static_cast<size_t>(m * n)));
    multiply_bf16(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, 0, product.data(), n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const float value = product[static_cast<size_t>(i * n + j)];
        c[i * ldc + j] = bf16(beta == 0 ? value : value + beta * float(c[i * ldc + j]));
      }
  }
}

template <class T>
void parallel_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Wide<T> alpha, const T* a,
                   int64_t lda, const T* b, int64_t ldb, Wide<T> beta, T* c, int64_t ldc) {
  if (m == 0 || n == 0 || k == 0) return gemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  const Tiling tile = tiling(m, n, k);
  const int64_t down = pieces(m, tile.rows), across = pieces(n, tile.columns), deep = pieces(k, tile.depth);
  const auto for_tiles = [&](const auto& multiply) {
    parallel_for(down * across * deep, 1, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) {
        const int64_t i = t / across % down * tile.rows, j = t % across * tile.columns;
        const int64_t part = t / (across * down), p = part * tile.depth;
        const T* a_tile = a + (trans_a ? p * lda + i : i * lda + p);
        const T* b_tile = b + (trans_b ? j * ldb + p : p * ldb + j);
        multiply(part, i, j, std::min(tile.rows, m - i), std::min(tile.columns, n - j),
                 std::min(tile.depth, k - p), a_tile, b_tile);
      }
    });
  };
  if (deep == 1)
    return for_tiles([&](int64_t, int64_t i, int64_t j, int64_t rows, int64_t columns, int64_t depth,
                         const T* a_tile, const T* b_tile) {
      gemm(trans_a, trans_b, rows, columns, depth, alpha, a_tile, lda, b_tile, ldb, beta, c + i * ldc + j,
           ldc);
    });
  const Storage memory(Device::cpu, static_cast<size_t>(deep * m * n) * sizeof(Wide<T>));
  Wide<T>* parts = static_cast<Wide<T>*>(memory.data());
  for_tiles([&](int64_t part, int64_t i, int64_t j, int64_t rows, int64_t columns, int64_t depth,
                const T* a_tile, const T* b_tile) {
    gemm(trans_a, trans_b, rows, columns, depth, alpha, a_tile, lda, b_tile, ldb, Wide<T>(0),
         parts + (part * m + i) * n + j, n);
  });
  add_parts(deep, m, n, parts, beta, c, ldc);
}

std::string blas_kernels() {
  prepare_blas();
  return std::string("OpenBLAS ") + openblas_get_corename();
}

template void gemm(bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t,
                   float, float*, int64_t);
template void gemm(bool, bool, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*,
                   int64_t, double, double*, int64_t);
template void gemm(bool, bool, int64_t, int64_t, int64_t, float, const bf16*, int64_t, const bf16*, int64_t,
                   float, bf16*, int64_t);
template void gemm(bool, bool, int64_t, int64_t, int64_t, float, const bf16*, int64_t, const bf16*, int64_t,
                   float, float*, int64_t);
TESSERA_FOR_FLOATS(parallel_gemm)

}  // namespace tessera
