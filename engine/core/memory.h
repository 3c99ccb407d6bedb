#pragma once

#include <cstddef>

namespace tessera {

// Raw memory of one device. Each device defines these members in its own file (memory_cpu.cpp).
template <class Dev> struct Memory {
  // At least `bytes` bytes aligned to 64; fails with the amount where there is no more.
  static void* allocate(size_t bytes);
  static void release(void* block, size_t bytes);
  static void zero(void* to, size_t bytes);
  static void copy(void* to, const void* from, size_t bytes);  // both on the device
  static void to_host(void* to, const void* from, size_t bytes);
  static void from_host(void* to, const void* from, size_t bytes);
};

}  // namespace tessera
