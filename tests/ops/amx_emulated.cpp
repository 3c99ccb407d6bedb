// The kernels for AMX on a processor without it: its instructions as loops, one by one as Intel's manual
// defines them. This tests the kernels' addresses, borders and order, not the processor.

#include "tests/ops/amx_emulated.h"

#if defined(__AVX512BF16__) && defined(__AVX512VL__) && defined(__AVX512BW__)

#include <immintrin.h>

#include <array>
#include <cstring>

#include "engine/core/dtype.h"
#include "engine/core/error.h"

namespace {

using tessera::bf16;

struct Tile {
  std::array<std::array<unsigned char, 64>, 16> row;
};

std::array<Tile, 8> tiles;
bool configured = false;

// Every tile has the shape that the kernels take for granted: 16 rows of 64 bytes.
void tile_loadconfig(const void* shapes) {
  std::array<unsigned char, 64> bytes;
  std::memcpy(bytes.data(), shapes, bytes.size());
  tessera::check(bytes[0] == 1 && bytes[1] == 0, "palette 1 from row 0 on");
  for (size_t t = 0; t < 8; ++t)
    tessera::check(bytes[16 + 2 * t] == 64 && bytes[17 + 2 * t] == 0 && bytes[48 + t] == 16, "tile ", t);
  configured = true;
}

void tile_release() { configured = false; }

Tile& tile(int t) {
  tessera::check(configured, "a tile before its shape");
  return tiles.at(static_cast<size_t>(t));
}

void tile_zero(int t) { tile(t) = {}; }

void tile_loadd(int t, const void* from, int64_t stride) {
  for (size_t r = 0; r < 16; ++r)
    std::memcpy(tile(t).row[r].data(), static_cast<const char*>(from) + static_cast<int64_t>(r) * stride, 64);
}

void tile_stored(int t, void* to, int64_t stride) {
  for (size_t r = 0; r < 16; ++r)
    std::memcpy(static_cast<char*>(to) + static_cast<int64_t>(r) * stride, tile(t).row[r].data(), 64);
}

void tile_dpbf16ps(int to, int a, int b) {
  for (size_t m = 0; m < 16; ++m)
    for (size_t k = 0; k < 16; ++k)
      for (size_t n = 0; n < 16; ++n) {
        float sum;
        std::array<bf16, 2> left, right;
        std::memcpy(&sum, &tile(to).row[m][4 * n], 4);
        std::memcpy(left.data(), &tile(a).row[m][4 * k], 4);
        std::memcpy(right.data(), &tile(b).row[k][4 * n], 4);
        sum += float(left[0]) * float(right[0]);
        sum += float(left[1]) * float(right[1]);
        std::memcpy(&tile(to).row[m][4 * n], &sum, 4);
      }
}

}  // namespace

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig tile_loadconfig
#define _tile_release tile_release
#define _tile_zero tile_zero
#define _tile_loadd tile_loadd
#define _tile_stored tile_stored
#define _tile_dpbf16ps tile_dpbf16ps
#ifndef __AMX_BF16__
#define __AMX_BF16__
#endif
#ifndef __AMX_TILE__
#define __AMX_TILE__
#endif
#define amx_bf16_kernels emulated_amx_kernels
#include "engine/cpu/bf16_gemm_amx_cpu.cpp"

#else

const tessera::Bf16Kernels* tessera::emulated_amx_kernels() { return nullptr; }

#endif
