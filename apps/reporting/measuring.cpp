#include "apps/reporting/measuring.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "engine/core/storage.h"

namespace tessera {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

int64_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  return 0;
}

void reset_peak_memory() {
  release_cached(Device::cpu);
#ifdef __GLIBC__
  malloc_trim(0);  // free() keeps blocks of up to 32 MB for itself
#endif
  std::ofstream("/proc/self/clear_refs") << 5;
}

int64_t peak_memory_bytes(Device device) {
  return device == Device::cpu ? peak_memory_bytes() : static_cast<int64_t>(memory_stats(device).peak);
}

}  // namespace tessera
