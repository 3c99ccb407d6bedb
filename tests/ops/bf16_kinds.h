#pragma once

#include <doctest/doctest.h>

#include <string>

#include "engine/cpu/processor.h"
#include "tests/emulator/bf16_kernels.h"

namespace tessera {

// Calls check(kernels) for every kind of kernels of bf16: by the processor where it has their instructions
// (or all but those for tiles), and by the emulator where that is built.
template <class Check> void for_every_kind(const Check& check) {
  const auto check_one = [&](const Bf16Kernels* kernels, const std::string& by) {
    if (!kernels) return 0;
    CAPTURE(kernels->name + by);
    check(*kernels);
    return 1;
  };
  const std::string processors = " by the processor", emulators = " by the emulator";
  const Processor here = processor();
  const int checked =
      check_one(here >= Processor::avx512_bf16 ? avx512_bf16_kernels() : nullptr, processors) +
      check_one(here >= Processor::amx ? amx_bf16_kernels() : nullptr, processors) +
      check_one(trapped_amx_kernels(), " by the processor, its tiles by the emulator") +
      check_one(emulated_avx512_kernels(), emulators) + check_one(emulated_amx_kernels(), emulators);
  if (checked == 0) MESSAGE("no instructions for bf16 and no emulator of them: nothing is compared");
}

}  // namespace tessera
