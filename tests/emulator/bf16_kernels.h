#pragma once

#include "engine/cpu/bf16_gemm.h"

namespace tessera {

// These functions return the kernels of avx512_bf16_kernels() and amx_bf16_kernels() with the processor's
// instructions emulated (avx512.h, amx_kernels.h), or null where the processor has no AVX2 or the build's
// compiler is not GCC. In a program that links them the engine's bf16_kernels() returns them too, if the
// environment says TESSERA_EMULATE=avx512bf16 or amx.
const Bf16Kernels* emulated_avx512_kernels();
const Bf16Kernels* emulated_amx_kernels();

// The kernels of amx_bf16_kernels() as they are compiled for a processor with AMX, whose instructions for
// tiles trap from now on (trapped_tiles.h); null where the processor has them, or no AVX-512-BF16, or the
// build has no such kernels. The engine's bf16_kernels() returns them if the environment says
// TESSERA_EMULATE=tiles. doctest takes the trap away between two cases: each call sets it again.
const Bf16Kernels* trapped_amx_kernels();

// These functions return the same kernels without asking for AVX2. The kernels' files define them, because
// avx512_kernels.h and amx_kernels.h give their functions these names.
const Bf16Kernels* table_of_emulated_avx512();
const Bf16Kernels* table_of_emulated_amx();

// This function says whether TESSERA_EMULATE asks for emulated kernels. The program ends where that variable
// names anything but avx512bf16, amx and tiles.
bool emulates_bf16();

// The count says how often the engine has called bf16_kernels() and was given emulated ones.
int64_t emulated_kernels_given();

}  // namespace tessera

namespace emulated {

// An emulated instruction calls this function where the processor would fault: unless `right`, the program
// ends with the words of `otherwise`.
void require(bool right, const char* otherwise);

}  // namespace emulated
