#include "engine/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/core/error.h"

namespace tessera {

Schedule::Schedule(const Options& options) : options_(options) {
  const auto& [highest, first, last, warmup, iterations, decay] = options_;
  check(std::isfinite(highest) && first >= 0 && first <= highest && last >= 0 && last <= highest,
        "schedule: a learning rate from ", first, " to ", highest, " and down to ", last,
        "; wanted 0 <= lowest <= highest");
  check(warmup >= 0 && warmup <= iterations, "schedule: ", warmup, " iterations of warm-up in a run of ",
        iterations);
}

double Schedule::lr(int64_t k) const {
  const auto& [highest, first, last, warmup, iterations, decay] = options_;
  if (k < warmup)
    return first +
           (highest - first) * static_cast<double>(std::max<int64_t>(k, 0)) / static_cast<double>(warmup);
  if (decay == Decay::none) return highest;
  if (k >= iterations) return last;
  if (k <= 0) return first;
  const double way = static_cast<double>(k - warmup) / static_cast<double>(iterations - warmup);
  if (decay == Decay::linear) return highest + (last - highest) * way;
  const double angle =
      std::numbers::pi * static_cast<double>(k - warmup) / static_cast<double>(iterations - warmup);
  return last + (highest - last) * (1 + std::cos(angle)) / 2;
}

}  // namespace tessera
