#pragma once

// The build includes this header before the kernels of AMX, as avx512_kernels.h before the others. The
// instructions of AMX are loops here, one by one as Intel's manual defines them.

#include "tests/emulator/avx512_kernels.h"

namespace emulated {

namespace {

struct Tile {
  unsigned char row[16][64] = {};
  int rows = 16;
};

thread_local Tile tiles[8];
thread_local bool configured = false;

// Rows have 64 bytes, as the kernels take for granted.
void tile_loadconfig(const void* shapes) {
  unsigned char bytes[64];
  __builtin_memcpy(bytes, shapes, sizeof bytes);
  require(bytes[0] == 1 && bytes[1] == 0, "AMX: tiles not of palette 1 from row 0 on");
  for (int t = 0; t < 8; ++t) {
    const int rows = bytes[48 + t];
    require(bytes[16 + 2 * t] == 64 && bytes[17 + 2 * t] == 0 && rows >= 1 && rows <= 16,
            "AMX: a tile that has not 1 to 16 rows of 64 bytes");
    tiles[t] = {.rows = rows};
  }
  configured = true;
}

void tile_release() { configured = false; }

Tile& tile(int t) {
  require(configured && t >= 0 && t < 8, "AMX: a tile before its shape, or beyond the eighth");
  return tiles[t];
}

void tile_zero(int t) { tile(t) = {.rows = tile(t).rows}; }

void tile_loadd(int t, const void* from, int64_t stride) {
  for (int r = 0; r < tile(t).rows; ++r)
    __builtin_memcpy(tile(t).row[r], static_cast<const char*>(from) + r * stride, 64);
}

void tile_stored(int t, void* to, int64_t stride) {
  for (int r = 0; r < tile(t).rows; ++r)
    __builtin_memcpy(static_cast<char*>(to) + r * stride, tile(t).row[r], 64);
}

// Row m of `to` += the pair k of row m of `a`, times row k of `b`, whose 16 pairs are of 16 columns.
void tile_dpbf16ps(int to, int a, int b) {
  require(tile(to).rows == tile(a).rows && tile(b).rows == 16, "AMX: a product of tiles that do not match");
  for (int m = 0; m < tile(to).rows; ++m) {
    auto sums = load<__m512>(tile(to).row[m]);
    for (int k = 0; k < 16; ++k) {
      const Numbers left = set1_epi32(load<int32_t>(tile(a).row[m] + 4 * k));
      sums = dpbf16_ps(sums, bits<__m512bh>(left), load<__m512bh>(tile(b).row[k]));
    }
    store(tile(to).row[m], sums);
  }
}

}  // namespace

}  // namespace emulated

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig emulated::tile_loadconfig
#define _tile_release emulated::tile_release
#define _tile_zero emulated::tile_zero
#define _tile_loadd emulated::tile_loadd
#define _tile_stored emulated::tile_stored
#define _tile_dpbf16ps emulated::tile_dpbf16ps

#define amx_bf16_kernels table_of_emulated_amx
#ifndef __AMX_BF16__
#define __AMX_BF16__
#endif
#ifndef __AMX_TILE__
#define __AMX_TILE__
#endif
