#pragma once

#include <memory>
#include <vector>

#include "engine/core/device.h"

namespace tessera {

// How long a device works from one place in its work to the next: on the CPU by the host's clock, on a GPU by
// that of its stream, which runs on after the host's calls.
class LapClock {
 public:
  LapClock() = default;
  virtual ~LapClock() = default;
  LapClock(const LapClock&) = delete;
  LapClock& operator=(const LapClock&) = delete;

  // A place: behind all that this thread has begun.
  virtual void mark() = 0;
  // Waits until the last place is reached; the seconds from each to the next, one fewer than marks. Then it
  // begins anew.
  virtual std::vector<double> laps() = 0;
};

std::unique_ptr<LapClock> make_lap_clock(Device device);

}  // namespace tessera
