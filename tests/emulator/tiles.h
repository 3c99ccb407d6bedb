#pragma once

// These functions do what the instructions of AMX do that our kernels use, as Intel's manual defines them, on
// eight tiles of each thread. amx_kernels.h puts them into the kernels' source, and trapped_tiles.cpp calls
// them where the compiled kernels trap.

#include "tests/emulator/avx512.h"

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
  constexpr int reserved[3][2] = {{2, 16}, {32, 48}, {56, 64}};
  for (const auto& [from, to] : reserved)
    for (int i = from; i < to; ++i)
      require(bytes[i] == 0, "AMX: a reserved byte of the tiles' shapes that is not 0");
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

// Row m of `to` += the pair k of row m of `a`, times row k of `b`, whose 16 pairs are of 16 columns. The
// first numbers of the pairs and the second ones have sums of their own, which are added at the end.
void tile_dpbf16ps(int to, int a, int b) {
  require(to != a && to != b && a != b, "AMX: a product of a tile with itself");
  require(tile(to).rows == tile(a).rows && tile(b).rows == 16, "AMX: a product of tiles that do not match");
  for (int m = 0; m < tile(to).rows; ++m) {
    Floats first{}, second{};
    for (int k = 0; k < 16; ++k) {
      const auto left = bits<__m512bh>(set1_epi32(load<int32_t>(tile(a).row[m] + 4 * k)));
      const auto right = load<__m512bh>(tile(b).row[k]);
      first = flushed(fmadd_ps(lower(left), lower(right), first));
      second = flushed(fmadd_ps(upper(left), upper(right), second));
    }
    store(tile(to).row[m], flushed(flushed(load<Floats>(tile(to).row[m])) + flushed(first + second)));
  }
}

}  // namespace

}  // namespace emulated
