#pragma once

// engine/cuda/mma.h on the host, by the definitions of PTX's manual.

#include <cuda_runtime.h>

namespace tessera {

inline uint32_t pack_pair(float low, float high) {
  return uint32_t{bf16(low).bits} | uint32_t{bf16(high).bits} << 16;
}

inline uint32_t load_pair(const bf16* from) { return uint32_t{from[0].bits} | uint32_t{from[1].bits} << 16; }

inline float of_pair(uint32_t pair, int which) {
  return std::bit_cast<float>(which ? pair & 0xffff0000u : pair << 16);
}

// A(i, k) is with lane i % 8 * 4 + k % 8 / 2, B(k, j) with lane j * 4 + k % 8 / 2.
inline void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  constexpr unsigned all = 0xffffffffu;
  using Four = std::array<uint32_t, 4>;
  using Two = std::array<uint32_t, 2>;
  const int g = emulator::lane() / 4, t = emulator::lane() % 4;
  for (int pair = 0; pair < 4; ++pair) {  // k = 2 pair, 2 pair + 1, and these + 8
    const Four rows = emulator::exchange(all, Four{a[0], a[1], a[2], a[3]}, g * 4 + pair);
    for (int j = 0; j < 2; ++j) {
      const Two column = emulator::exchange(all, Two{b[0], b[1]}, (2 * t + j) * 4 + pair);
      for (int i = 0; i < 2; ++i)
        for (int half = 0; half < 2; ++half)
          for (int k = 0; k < 2; ++k)
            c[2 * i + j] += of_pair(rows[static_cast<size_t>(2 * half + i)], k) *
                            of_pair(column[static_cast<size_t>(half)], k);
    }
  }
}

// ldmatrix.trans: of matrix m, whose rows lanes 8 m .. 8 m + 7 point to, a lane takes column g of rows 2t, 2t
// + 1.
template <int matrices> inline void load_matrices_turned(uint32_t (&to)[matrices], const bf16* row) {
  const int g = emulator::lane() / 4, t = emulator::lane() % 4;
  for (int m = 0; m < matrices; ++m) {
    const bf16* first = emulator::exchange(0xffffffffu, row, 8 * m + 2 * t);
    const bf16* second = emulator::exchange(0xffffffffu, row, 8 * m + 2 * t + 1);
    to[m] = uint32_t{first[g].bits} | uint32_t{second[g].bits} << 16;
  }
}
inline void load_columns(uint32_t (&b)[2], const bf16* row) { load_matrices_turned(b, row); }
inline void load_rows_turned(uint32_t (&a)[4], const bf16* eight) { load_matrices_turned(a, eight); }

}  // namespace tessera
