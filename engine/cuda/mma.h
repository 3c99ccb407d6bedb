#pragma once

// The tensor cores' product of small matrices of bf16, summed in float: mma.sync.m16n8k16 of PTX ("Matrix
// multiply-accumulate operation using mma instruction" in its manual). With g = lane / 4 and t = lane % 4, a
// lane holds these numbers, two neighbours in each register of bf16, the lower one first:
//
//   A [16, 16]: a[0] = A(g, 2t ..), a[1] = A(g + 8, 2t ..), a[2] = A(g, 2t + 8 ..),
//               a[3] = A(g + 8, 2t + 8 ..)
//   B [16, 8]:  b[0] = B(2t .., g), b[1] = B(2t + 8 .., g)
//   C [16, 8]:  c[0], c[1] = C(g, 2t ..), c[2], c[3] = C(g + 8, 2t ..)

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/cuda/launch.h"

namespace tessera {

// The row and the column of the lane's number e in a fragment of C.
TESSERA_HD inline int fragment_row(int lane, int e) { return lane / 4 + e / 2 * 8; }
TESSERA_HD inline int fragment_column(int lane, int e) { return lane % 4 * 2 + e % 2; }

}  // namespace tessera

#ifdef TESSERA_CUDA_EMULATED
#include <emulated_mma.h>
#else

namespace tessera {

// Two numbers in one register, each rounded to the nearest bf16.
__device__ inline uint32_t pack_pair(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// c += a b, by all lanes of a warp.
__device__ inline void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Loads four matrices [8, 8] from shared memory. Lane l gives the address of row l % 8 of matrix l / 8, a
// multiple of 16 bytes. It receives numbers (g, 2t ..) of each matrix, or (2t .., g), transposed, if
// `turned`.
template <bool turned>
__device__ inline void load_matrices(uint32_t& m0, uint32_t& m1, uint32_t& m2, uint32_t& m3,
                                     const bf16* row) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (turned)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m0), "=r"(m1), "=r"(m2), "=r"(m3)
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m0), "=r"(m1), "=r"(m2), "=r"(m3)
                 : "r"(address)
                 : "memory");
}

}  // namespace tessera

#endif

namespace tessera {

// Load the factors of mma() from a matrix M [16, 16] in shared memory, whose rows are `stride` numbers apart
// and begin at multiples of 16 bytes. All lanes of a warp must call them.

// a = M.
__device__ inline void load_left(uint32_t (&a)[4], const bf16* m, int stride) {
  const int lane = own_lane();
  load_matrices<false>(a[0], a[1], a[2], a[3], m + lane % 16 * stride + lane / 16 * 8);
}

// a = M^T.
__device__ inline void load_left_turned(uint32_t (&a)[4], const bf16* m, int stride) {
  const int lane = own_lane();
  load_matrices<true>(a[0], a[1], a[2], a[3], m + (lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 8);
}

// b[0] = the first eight columns of M, b[1] = the last eight.
__device__ inline void load_right(uint32_t (&b)[2][2], const bf16* m, int stride) {
  const int lane = own_lane();
  load_matrices<true>(b[0][0], b[0][1], b[1][0], b[1][1], m + lane % 16 * stride + lane / 16 * 8);
}

// b[0] = the first eight columns of M^T, b[1] = the last eight.
__device__ inline void load_right_turned(uint32_t (&b)[2][2], const bf16* m, int stride) {
  const int lane = own_lane();
  load_matrices<false>(b[0][0], b[0][1], b[1][0], b[1][1],
                       m + (lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 8);
}

}  // namespace tessera
