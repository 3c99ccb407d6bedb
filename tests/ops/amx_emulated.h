#pragma once

#include "engine/cpu/bf16_gemm.h"

namespace tessera {

// amx_bf16_kernels() with AMX's instructions emulated; null where this build has no AVX-512-BF16 for the
// rest.
const Bf16Kernels* emulated_amx_kernels();

}  // namespace tessera
