#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/core/device.h"

namespace tessera {

// One block of memory. It comes from its device's pool and goes back to it, so that a training step asks
// the system for nothing that the step before it had. Thread-safe.
class Storage {
 public:
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
  size_t in_use = 0;                // bytes held by storages now
  size_t peak = 0;                  // the most that `in_use` has been since the last reset_peak
  size_t reserved = 0;              // bytes taken from the system: in use or waiting in the pool
  uint64_t system_allocations = 0;  // blocks ever asked of the system
};

MemoryStats memory_stats(Device device);
void reset_peak(Device device);
// Gives the pool's waiting blocks back to the system.
void release_cached(Device device);
// While on, every new block is filled with NaN bytes, so that a value that is read before it is written
// shows. For tests; CPU only.
void poison_new_storage(bool on);

}  // namespace tessera
