#pragma once

// The instructions of engine/cuda/mma.h on the host, by the definitions of PTX's manual.

#include <cuda_runtime.h>

namespace tessera {

inline uint32_t join(bf16 low, bf16 high) { return uint32_t{low.bits} | uint32_t{high.bits} << 16; }

inline uint32_t pack_pair(float low, float high) { return join(bf16(low), bf16(high)); }

inline float of_pair(uint32_t pair, int which) {
  return std::bit_cast<float>(which ? pair & 0xffff0000u : pair << 16);
}

// Lane i % 8 * 4 + k % 8 / 2 holds A(i, k), lane j * 4 + k % 8 / 2 holds B(k, j).
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

// ldmatrix.x4: lanes 8 m .. 8 m + 7 point to the rows of matrix m.
template <bool turned>
void load_matrices(uint32_t& m0, uint32_t& m1, uint32_t& m2, uint32_t& m3, const bf16* row) {
  const int g = emulator::lane() / 4, t = emulator::lane() % 4;
  emulator::expect_aligned(row, 16);
  int first_lane = 0;
  for (uint32_t* to : {&m0, &m1, &m2, &m3}) {
    const bf16* first = emulator::exchange(0xffffffffu, row, first_lane + (turned ? 2 * t : g));
    const bf16* second = emulator::exchange(0xffffffffu, row, first_lane + (turned ? 2 * t + 1 : g));
    *to = join(first[turned ? g : 2 * t], second[turned ? g : 2 * t + 1]);
    first_lane += 8;
  }
}

}  // namespace tessera
