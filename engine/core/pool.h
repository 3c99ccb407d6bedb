#pragma once

#include <cstdint>

#include "engine/core/device.h"

namespace tessera {

// Blocks that belong together: what storages of `device` take between begin() and end() goes back here, never
// to the device's other storages. So a captured graph owns the memory that it writes at each replay. At its
// end the set gives its blocks back, those in use when their storages die.
class BlockSet {
 public:
  explicit BlockSet(Device device);
  ~BlockSet();
  BlockSet(const BlockSet&) = delete;
  BlockSet& operator=(const BlockSet&) = delete;

  void begin() const;  // on all threads; one set of a device at a time
  void end() const;

 private:
  Device device_;
  uint64_t number_;
};

// While one lives (and `on`), a block that a set gives to this thread's storages is new, and never another's
// afterwards: the place of a constant.
class NewBlocks {
 public:
  explicit NewBlocks(bool on = true) : outer_(active_) { active_ = active_ || on; }
  ~NewBlocks() { active_ = outer_; }
  NewBlocks(const NewBlocks&) = delete;
  NewBlocks& operator=(const NewBlocks&) = delete;
  static bool active() { return active_; }

 private:
  inline static thread_local bool active_ = false;
  bool outer_;
};

}  // namespace tessera
