#include "tests/emulator/bf16_kernels.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "engine/cpu/processor.h"
#include "tests/emulator/trapped_tiles.h"

namespace {

std::string_view wanted() {
  const char* name = std::getenv("TESSERA_EMULATE");
  const std::string_view kind = name ? name : "";
  emulated::require(kind.empty() || kind == "avx512bf16" || kind == "amx" || kind == "tiles",
                    "TESSERA_EMULATE names no kind of kernels; avx512bf16, amx and tiles are");
  return kind;
}

}  // namespace

void emulated::require(bool right, const char* otherwise) {
  if (right) return;
  std::fprintf(stderr, "emulated processor: %s\n", otherwise);
  std::abort();
}

namespace tessera {

#ifdef TESSERA_EMULATED_KERNELS
namespace {

std::atomic<int64_t> given{0};

// The linker's option --wrap (bf16_kernels.cmake) leads every call of bf16_kernels() to the second function,
// and calls bf16_kernels() itself where the first one is called.
extern "C" const Bf16Kernels* kernels_of_processor() __asm__("__real__ZN7tessera12bf16_kernelsEv");
extern "C" const Bf16Kernels* kernels_in_their_place() __asm__("__wrap__ZN7tessera12bf16_kernelsEv");

// Ends the program with the code that ctest takes for a test that was skipped.
[[noreturn]] void skip_program() {
  std::fputs("skipped: TESSERA_EMULATE=tiles needs AVX-512-BF16 without AMX\n", stderr);
  std::_Exit(77);
}

}  // namespace

extern "C" const Bf16Kernels* kernels_in_their_place() {
  static const std::string_view kind = wanted();
  const Bf16Kernels* const kernels = kind == "amx"          ? emulated_amx_kernels()
                                     : kind == "avx512bf16" ? emulated_avx512_kernels()
                                     : kind == "tiles"      ? trapped_amx_kernels()
                                                            : nullptr;
  if (kind == "tiles" && !kernels) skip_program();
  emulated::require(kernels || kind.empty(),
                    "TESSERA_EMULATE needs AVX2, which this processor or the one of TESSERA_CPU lacks");
  if (kernels) ++given;
  return kernels ? kernels : kernels_of_processor();
}

const Bf16Kernels* emulated_avx512_kernels() {
  return processor() >= Processor::avx2 ? table_of_emulated_avx512() : nullptr;
}
const Bf16Kernels* emulated_amx_kernels() {
  return processor() >= Processor::avx2 ? table_of_emulated_amx() : nullptr;
}
const Bf16Kernels* trapped_amx_kernels() {
  if (processor() != Processor::avx512_bf16) return nullptr;
  emulated::trap_tiles();
  return amx_bf16_kernels();
}
int64_t emulated_kernels_given() { return given; }
#else
const Bf16Kernels* emulated_avx512_kernels() { return nullptr; }
const Bf16Kernels* emulated_amx_kernels() { return nullptr; }
const Bf16Kernels* trapped_amx_kernels() { return nullptr; }
int64_t emulated_kernels_given() { return 0; }
#endif

bool emulates_bf16() { return !wanted().empty(); }

}  // namespace tessera
