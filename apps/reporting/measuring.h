#pragma once

// Time and memory of the program, for `tessera bench`.

#include <chrono>
#include <cstdint>
#include <vector>

#include "engine/core/device.h"

namespace tessera {

// Counts seconds from its construction.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start_ = Clock::now();
};

// The middle value; the upper one of the two for an even number of values. Needs at least one value.
double median(std::vector<double> values);

// The most memory in bytes that the process has used since it began or since reset_peak_memory(); 0 if the
// system does not report it.
int64_t peak_memory_bytes();
// That of the process for the CPU; for a GPU the most bytes that its tensors have used.
int64_t peak_memory_bytes(Device device);
// Returns the engine's cached CPU memory to the system, and restarts peak_memory_bytes() where the system
// can.
void reset_peak_memory();

}  // namespace tessera
