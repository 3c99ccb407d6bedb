#include "engine/check/memory_rate.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "engine/autograd/accumulate_kernels.h"
#include "engine/core/device.h"

namespace tessera {

double measure_memory_rate() {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t count = int64_t{1} << 24;
  constexpr double bytes = 3.0 * sizeof(float) * count;
  const auto seconds_since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  std::vector<float> a(count), b(count);
  std::vector<double> seconds;
  for (const auto start = Clock::now(); seconds.empty() || seconds_since(start) < 0.3;) {
    const auto begin = Clock::now();
    AccumulateKernels<Cpu>::add(a.data(), b.data(), count);
    seconds.push_back(seconds_since(begin));
  }
  std::nth_element(seconds.begin(), seconds.begin() + std::ssize(seconds) / 2, seconds.end());
  return bytes / seconds[seconds.size() / 2];
}

}  // namespace tessera
