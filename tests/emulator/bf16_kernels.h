#pragma once

#include "engine/cpu/bf16_gemm.h"

namespace tessera {

// avx512_bf16_kernels() and amx_bf16_kernels() with the processor's instructions emulated (avx512_kernels.h,
// amx_kernels.h); null where the processor has no AVX2, or the build's compiler is not GCC. A program that
// links them calls them wherever the engine calls bf16_kernels(), if the environment says
// TESSERA_EMULATE=avx512bf16 or amx.
const Bf16Kernels* emulated_avx512_kernels();
const Bf16Kernels* emulated_amx_kernels();

// The same on any processor: what those headers call the functions in the kernels' files.
const Bf16Kernels* table_of_emulated_avx512();
const Bf16Kernels* table_of_emulated_amx();

// Whether the environment asks for that. Ends the program where it names another kind.
bool emulates_bf16();

// How often the engine has asked for the kernels and was given emulated ones.
int64_t emulated_kernels_given();

}  // namespace tessera

namespace emulated {

// Ends the program with these words where the processor would fault.
void require(bool right, const char* otherwise);

}  // namespace emulated
