#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/core/device.h"

namespace tessera {

/// One block of memory, aligned to 64 bytes. It comes from its device's pool and goes back to it, so that a
/// training step asks the system for no memory that the previous step already had. Thread-safe.
class Storage {
 public:
  /// Fails where the device is missing, or has no more memory. Its content is not set.
  Storage(Device device, size_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return block_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

 private:
  Device device_;
  size_t bytes_;
  void* block_;
};

struct MemoryStats {
  size_t in_use = 0;                ///< bytes held by storages now
  size_t peak = 0;                  ///< the largest `in_use` since the last reset_peak
  size_t reserved = 0;              ///< bytes taken from the system: in use, or waiting in the pool
  uint64_t system_allocations = 0;  ///< blocks requested from the system since the process began
};

MemoryStats memory_stats(Device device);
void reset_peak(Device device);
/// Gives the pool's waiting blocks back to the system.
void release_cached(Device device);
/// Fills every new block on the CPU with NaN bytes while on, so that a value which is read before it is
/// written shows. For tests.
void poison_new_storage(bool on);

}  // namespace tessera
