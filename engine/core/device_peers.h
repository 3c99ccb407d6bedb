#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/core/dtype.h"

namespace tessera {

/// Transfers between the GPUs of several processes, by NCCL. They are queued on the GPU in the order of the
/// calls, as kernels are, and the host does not wait for them. Pointers lie on the GPU. Every function fails,
/// naming the call, where NCCL does.
class DevicePeers {
 public:
  DevicePeers() = default;
  virtual ~DevicePeers() = default;
  DevicePeers(const DevicePeers&) = delete;
  DevicePeers& operator=(const DevicePeers&) = delete;

  /// Transfers between begin() and end() are done at the same time. What one process sends to another is
  /// received in the order of the calls.
  virtual void begin() = 0;
  virtual void send(int to, const void* bytes, size_t count) = 0;
  virtual void receive(int from, void* bytes, size_t count) = 0;
  virtual void end() = 0;

  /// Makes n numbers, f32 or bf16, the sums of those of all processes, in an order that NCCL chooses.
  virtual void add_up(void* numbers, int64_t n, DType type) = 0;
};

/// The GPU that this process uses, by its place on the bus of its machine. Empty where this build has no
/// NCCL.
std::string place_of_gpu();

/// A key that one process makes and gives to all that are to join.
std::string new_peers_key();

/// Joins `size` processes, each with a GPU of its own; all of them call it with the same key. Waits for them.
std::unique_ptr<DevicePeers> join_peers(const std::string& key, int rank, int size);

}  // namespace tessera
