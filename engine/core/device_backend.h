#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/core/device.h"
#include "engine/core/dtype.h"

namespace tessera {

class LapClock;
class ReadBack;
class Replay;

// All that engine/core needs of a device, besides kernels, which dispatch.h finds by the device as a type.
// Pointers lie on the device unless a name says host. A device works in the order of the calls; copies from
// the host are done with the host's memory when they return.
class DeviceBackend {
 public:
  DeviceBackend() = default;
  virtual ~DeviceBackend() = default;
  DeviceBackend(const DeviceBackend&) = delete;
  DeviceBackend& operator=(const DeviceBackend&) = delete;

  // Makes the device ready. Fails, saying what to do, where this machine has no such device.
  virtual void make_ready() = 0;

  // --- memory ---

  // At least `bytes` bytes aligned to 64. Fails with the amount where there is no more.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* block, size_t bytes) = 0;
  // keeps() says whether release() holds on to a block of this size, whose memory then serves any block.
  virtual bool keeps(size_t /*bytes*/) const { return false; }
  struct Kept {
    size_t bytes = 0;          // in such blocks, or kept
    uint64_t allocations = 0;  // of such blocks that took memory from the system
  };
  virtual Kept kept() { return {}; }
  virtual void trim() {}  // gives what is kept back to the system
  virtual void zero(void* to, size_t bytes) = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  virtual void copy_to_host(void* host, const void* from, size_t bytes) = 0;  // waits for the bytes
  virtual void copy_from_host(void* to, const void* host, size_t bytes) = 0;

  // --- n numbers of any type ---

  virtual void convert(int64_t n, DType from_type, const void* from, DType to_type, void* to) = 0;
  virtual void fill(int64_t n, double value, DType type, void* to) = 0;

  // --- the course of its work ---

  // A backward pass on this thread, within which the backend may put the sums off that end a parameter's
  // gradient: before_reading() tells it of a gradient that the pass itself is about to read or add to.
  virtual void begin_backward() {}
  virtual void before_reading(const void* /*gradient*/) {}
  virtual void end_backward() {}

  virtual std::unique_ptr<LapClock> make_lap_clock() = 0;  // lap_clock.h
  virtual std::unique_ptr<ReadBack> make_read_back() = 0;  // read_back.h
  // record_replay() and allow_tf32() of replay.h.
  virtual std::unique_ptr<Replay> record_replay(const std::function<void()>& work) = 0;
  virtual void allow_tf32(bool allowed) = 0;
};

// The device's backend, ready or not. Fails where this build lacks it.
DeviceBackend& backend(Device device);

DeviceBackend& cpu_backend();   // cpu_backend.cpp
DeviceBackend& cuda_backend();  // engine/cuda/backend.cpp, in a build with CUDA

}  // namespace tessera
