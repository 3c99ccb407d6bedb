#pragma once

// The build includes this header before the kernels of AMX, as avx512_kernels.h before the others: they call
// the functions of tiles.h instead of instructions.

#include "tests/emulator/avx512_kernels.h"
#include "tests/emulator/tiles.h"

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
