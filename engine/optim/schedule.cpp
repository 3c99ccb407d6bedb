#include "engine/optim/schedule.h"

#include <cmath>
#include <numbers>

#include "engine/core/error.h"

namespace tessera {

Schedule::Schedule(double M, double m, int64_t w, int64_t n, bool cosine)
    : M_(M), m_(m), w_(w), n_(n), cosine_(cosine) {
  check(std::isfinite(M) && m >= 0 && m <= M, "schedule: a learning rate from ", m, " to ", M,
        "; wanted 0 <= lowest <= highest");
  check(w >= 0 && w <= n, "schedule: ", w, " iterations of warm-up in a run of ", n);
}

Schedule Schedule::constant(double M) { return {M, M, 0, 0, false}; }

Schedule Schedule::warmup_cosine(double M, double m, int64_t w, int64_t n) { return {M, m, w, n, true}; }

double Schedule::lr(int64_t k) const {
  if (!cosine_) return M_;
  if (k <= 0 || k >= n_) return m_;
  if (k < w_) return m_ + (M_ - m_) * static_cast<double>(k) / static_cast<double>(w_);
  const double way = std::numbers::pi * static_cast<double>(k - w_) / static_cast<double>(n_ - w_);
  return m_ + (M_ - m_) * (1 + std::cos(way)) / 2;
}

}  // namespace tessera
