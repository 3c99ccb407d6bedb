#pragma once

#include <cstdint>

namespace tessera {

/// How often this thread has called operator new, while no NotCounted lived on it.
int64_t allocations();

class NotCounted {
 public:
  NotCounted();
  ~NotCounted();
  NotCounted(const NotCounted&) = delete;
  NotCounted& operator=(const NotCounted&) = delete;
};

}  // namespace tessera
