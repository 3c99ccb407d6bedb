#pragma once

// Which instructions the kernels may use, found out while the program runs.

#include <string>

namespace tessera {

// The kinds of processors that have kernels of their own, each with the instructions of those before it.
enum class Processor { any, avx2, avx512, avx512_bf16, amx };

// The best kind that this machine is, or the one that the environment's TESSERA_CPU names: avx2, avx512,
// avx512bf16, amx or any. Fails for any other name, and for a kind that this machine is not.
Processor processor();

// The name as TESSERA_CPU takes it.
std::string name(Processor kind);

// What the kernels of f32 and f64 are compiled for: the kind that was picked when the program started (any,
// avx2 or avx512), or "native" where they were built for one machine (TESSERA_NATIVE).
std::string kernels_in_use();

}  // namespace tessera
