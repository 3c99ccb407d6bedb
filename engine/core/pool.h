#pragma once

#include <cstdint>

#include "engine/core/device.h"
#include "engine/core/thread_scope.h"

namespace tessera {

// Blocks that belong together: storages of `device` that are made between begin() and end() take their memory
// from this set, and it goes back to the set, never to other storages. So a captured graph owns the memory
// that it writes at each replay. The set's end gives the blocks back to the pool, each one as soon as no
// storage uses it.
class BlockSet {
 public:
  explicit BlockSet(Device device);
  ~BlockSet();
  BlockSet(const BlockSet&) = delete;
  BlockSet& operator=(const BlockSet&) = delete;

  void begin() const;  // on all threads; fails while another set of the device is filled
  void end() const;

 private:
  Device device_;
  uint64_t number_;
};

// Storages that this thread makes for a set get new blocks, which no other storage of the set uses later: a
// constant of a captured graph keeps its place through all replays.
class ConstantBlocks : public ThreadScope<ConstantBlocks> {};

}  // namespace tessera
