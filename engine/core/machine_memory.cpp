#include "engine/core/machine_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "engine/core/error.h"

namespace tessera {

namespace {

constexpr int64_t unknown = std::numeric_limits<int64_t>::max();

// Memory and swap by /proc/meminfo, which gives kB.
int64_t of_machine() {
  std::ifstream file("/proc/meminfo");
  int64_t sum = 0;
  std::string key, unit;
  for (int64_t kilobytes; file >> key >> kilobytes && std::getline(file, unit);)
    if (key == "MemTotal:" || key == "SwapTotal:") sum += 1024 * kilobytes;
  return sum > 0 ? sum : unknown;
}

// What the control group in which a container runs may use.
int64_t of_group() {
  for (const char* name : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(name);
    if (int64_t bytes = 0; file >> bytes && bytes > 0) return bytes;
  }
  return unknown;
}

int64_t of_shell() {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? static_cast<int64_t>(limit.rlim_cur) : unknown;
}

// "3.1 TB", "23 GB": two digits, as tells the magnitude.
std::string magnitude(double bytes) {
  constexpr const char* units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(units); ++unit) bytes /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, bytes < 10 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
  return text;
}

}  // namespace

int64_t machine_memory() {
  static const int64_t bytes = std::min({of_machine(), of_group(), of_shell()});
  return bytes == unknown ? 0 : bytes;
}

void check_memory(double bytes, const std::string& what) {
  const int64_t here = machine_memory();
  check(here == 0 || bytes <= static_cast<double>(here), what, " ", magnitude(bytes), " of memory, here are ",
        magnitude(static_cast<double>(here)));
}

}  // namespace tessera
