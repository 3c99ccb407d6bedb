#include "engine/cpu/processor.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "engine/core/error.h"
#include "engine/cpu/bf16_gemm.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace tessera {

namespace {

constexpr std::array names{"any", "avx2", "avx512", "avx512bf16", "amx"};

#if defined(__x86_64__)
// Whether the processor has AMX's tiles with bf16, and the system lets this process use them: Linux keeps no
// room for a thread's tiles until it is asked to.
bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned bf16_bit = 1u << 22, tile_bit = 1u << 24;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & bf16_bit) || !(d & tile_bit)) return false;
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

Processor best() {
  __builtin_cpu_init();
  for (const bool has : {__builtin_cpu_supports("avx2") != 0, __builtin_cpu_supports("fma") != 0,
                         __builtin_cpu_supports("bmi") != 0, __builtin_cpu_supports("bmi2") != 0})
    if (!has) return Processor::any;
  for (const bool has : {__builtin_cpu_supports("avx512f") != 0, __builtin_cpu_supports("avx512bw") != 0,
                         __builtin_cpu_supports("avx512vl") != 0, __builtin_cpu_supports("avx512dq") != 0,
                         __builtin_cpu_supports("avx512cd") != 0})
    if (!has) return Processor::avx2;
  if (!__builtin_cpu_supports("avx512bf16")) return Processor::avx512;
  return has_amx() ? Processor::amx : Processor::avx512_bf16;
}
#else
Processor best() { return Processor::any; }
#endif

Processor chosen() {
  const Processor has = best();
  const char* wanted = std::getenv("TESSERA_CPU");
  if (!wanted || !*wanted) return has;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == std::string(wanted)) {
      check(i <= static_cast<size_t>(has), "TESSERA_CPU=", wanted, ": this processor is of the kind ",
            name(has), "; unset it, or name that or one before it (any, avx2, avx512, avx512bf16, amx)");
      return static_cast<Processor>(i);
    }
  fail("TESSERA_CPU=", wanted, ": no such kind of processor; any, avx2, avx512, avx512bf16 and amx are");
}

}  // namespace

#if defined(TESSERA_KERNEL_VARIANTS)
// Made by separateKinds.cmake: the kernels of each kind in one order, and those in use.
extern "C" {
extern const uint64_t tessera_kernel_count;
extern void* const tessera_kernels_any[];
extern void* const tessera_kernels_avx2[];
extern void* const tessera_kernels_avx512[];
extern void* tessera_kernels_chosen[];
}

namespace {

// The best kind with kernels in the tables that this processor takes.
Processor kind_of_table() { return std::min(processor(), Processor::avx512); }

// Puts this processor's kernels in use, before main() and so before any thread. What TESSERA_CPU asks for and
// cannot have is reported by the first call of processor() after that.
[[gnu::constructor]] void choose_kernels() noexcept try {
  const Processor kind = kind_of_table();
  const auto* kernels = kind == Processor::avx512 ? tessera_kernels_avx512
                        : kind == Processor::avx2 ? tessera_kernels_avx2
                                                  : tessera_kernels_any;
  std::copy_n(kernels, tessera_kernel_count, tessera_kernels_chosen);
} catch (const Error&) {
}

}  // namespace

std::string kernels_in_use() { return name(kind_of_table()); }
#else
std::string kernels_in_use() { return "native"; }
#endif

Processor processor() {
  static const Processor kind = chosen();
  return kind;
}

std::string name(Processor kind) { return names[static_cast<size_t>(kind)]; }

const Bf16Kernels* bf16_kernels() {
  static const Bf16Kernels* const kernels = [] {
    const Processor kind = processor();
    const Bf16Kernels* tiles = kind >= Processor::amx ? amx_bf16_kernels() : nullptr;
    return tiles ? tiles : kind >= Processor::avx512_bf16 ? avx512_bf16_kernels() : nullptr;
  }();
  return kernels;
}

}  // namespace tessera
