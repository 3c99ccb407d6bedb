#pragma once

#include <memory>
#include <vector>

#include "engine/core/device.h"

namespace tessera {

// Measures how long a device takes from one point of its work to the next. A GPU works on after the host's
// calls return, so its time is taken by events on its stream; the CPU's by the host's clock.
class LapClock {
 public:
  LapClock() = default;
  virtual ~LapClock() = default;
  LapClock(const LapClock&) = delete;
  LapClock& operator=(const LapClock&) = delete;

  // Marks the point behind all work that this thread has begun.
  virtual void mark() = 0;
  // Waits until the last mark is reached, returns the seconds between neighbouring marks (one fewer than
  // there are marks), and forgets them.
  virtual std::vector<double> laps() = 0;
};

// Fails where the device is missing.
std::unique_ptr<LapClock> make_lap_clock(Device device);

}  // namespace tessera
