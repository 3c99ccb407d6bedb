#include "engine/core/lap_clock.h"

#include <chrono>

namespace tessera {

#ifdef TESSERA_CUDA
std::unique_ptr<LapClock> lap_clock_of_cuda();  // engine/cuda/lap_clock.cpp
#endif

namespace {

class HostClock final : public LapClock {
 public:
  void mark() override { marks_.push_back(Clock::now()); }

  std::vector<double> laps() override {
    std::vector<double> seconds;
    for (size_t i = 1; i < marks_.size(); ++i)
      seconds.push_back(std::chrono::duration<double>(marks_[i] - marks_[i - 1]).count());
    marks_.clear();
    return seconds;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> marks_;
};

}  // namespace

std::unique_ptr<LapClock> make_lap_clock(Device device) {
  require(device);
#ifdef TESSERA_CUDA
  if (device == Device::cuda) return lap_clock_of_cuda();
#endif
  return std::make_unique<HostClock>();
}

}  // namespace tessera
