#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "engine/core/parallel.h"
#include "engine/ops/batch_norm_kernels.h"

namespace tessera {

inline constexpr int64_t few_rows = 16;

// The backward pass, in double, of a batch norm over at most few_rows rows of the batch. Two rows lie one
// deviation from their mean, so that dx = rstd weight (dz - mean(dz) - h mean(dz h)) cancels but for eps: in
// float no digit of it would be right. dz(place, column) is the gradient of the norm's output and the
// residual's, which is left in dresidual.
template <class Dz>
void few_rows_backward(RowsSize size, const NormedColumns<float>& z, const Dz& dz,
                       const LayerGradients<float>& gradients, const Target<float>& dresidual) {
  const auto put = [](const Target<float>& to, int64_t at, double value) {
    if (to) to.data[at] = static_cast<float>(to.add ? static_cast<double>(to.data[at]) + value : value);
  };
  const auto n = static_cast<double>(size.rows);
  parallel_for(size.width, rows_a_chunk(size.rows), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      std::array<double, few_rows> h{}, d{};
      double mean = 0, variance = 0, level = 0, along = 0;
      for (int64_t r = 0; r < size.rows; ++r) mean += static_cast<double>(z.x[r * size.width + j]) / n;
      for (int64_t r = 0; r < size.rows; ++r) {
        const auto at = static_cast<size_t>(r);
        h[at] = static_cast<double>(z.x[r * size.width + j]) - mean;
        variance += h[at] * h[at] / n;
        d[at] = static_cast<double>(dz(r * size.width + j, j));
      }
      const double rstd = 1 / std::sqrt(variance + z.by.eps);
      for (size_t r = 0; r < static_cast<size_t>(size.rows); ++r) {
        h[r] *= rstd;
        level += d[r];
        along += d[r] * h[r];
      }
      put(gradients.dweight, j, along);
      put(gradients.dbias, j, level);
      for (int64_t r = 0; r < size.rows; ++r) {
        const auto at = static_cast<size_t>(r);
        put(dresidual, r * size.width + j, d[at]);
        put(gradients.dx, r * size.width + j,
            static_cast<double>(z.weight[j]) * rstd * (d[at] - level / n - h[at] * along / n));
      }
    }
  });
}

}  // namespace tessera
