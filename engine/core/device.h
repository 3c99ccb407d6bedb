#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>

// Marks scalar maths that CPU loops and CUDA kernels share.
#ifdef __CUDACC__
#define TESSERA_HD __host__ __device__
#else
#define TESSERA_HD
#endif

namespace tessera {

enum class Device : uint8_t { cpu, cuda };

/// The device as a type: kernels are members of a template over it (see dispatch.h).
struct Cpu {};
struct Cuda {};

std::string_view name(Device device);        ///< "cpu", "cuda"
Device parse_device(std::string_view text);  ///< the inverse; fails on any other text
std::ostream& operator<<(std::ostream& out, Device device);

// Whether this build has the CUDA backend. Nothing else in the engine asks the preprocessor for it.
#ifdef TESSERA_CUDA
inline constexpr bool has_cuda = true;
#else
inline constexpr bool has_cuda = false;
#endif

// The device in whose memory the values of a tensor on `device` lie: a dry run touches no memory, so its
// tensors may name a device that this build lacks, and the CPU lends theirs.
constexpr Device where_memory_is(Device device) { return has_cuda ? device : Device::cpu; }

/// Makes the device ready. Fails, saying what to do, where this build or this machine has no such device.
void require(Device device);

}  // namespace tessera
