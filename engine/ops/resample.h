#pragma once

#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

/// How one axis of a map is resampled: output i is the sum of weight * input[from] over its taps.
struct Taps {
  struct Tap {
    int64_t from;
    double weight;
  };
  std::vector<std::vector<Tap>> of;  ///< [output size]
  int64_t input_size = 0;
};

/// Bilinear with half-pixel centres (PyTorch's interpolate, align_corners false): output i lies at
/// (i + 1/2) input / output - 1/2; outside, the border repeats.
Taps bilinear_taps(int64_t input, int64_t output);
/// Bicubic, a = -0.75, half-pixel centres, borders repeated, no antialiasing: PyTorch's.
Taps bicubic_taps(int64_t input, int64_t output);
/// Cell k of n averages entries floor(k input / n) .. ceil((k + 1) input / n) - 1 (adaptive average pooling).
Taps average_taps(int64_t input, int64_t output);

/// Resamples a map, its rows by `vertical`, its columns by `horizontal`: [B, H, W, C] -> [B, H', W', C].
/// Fails where the taps are for another size or from no entry of it.
Tensor resample(const Tensor& x, const Taps& vertical, const Taps& horizontal);

}  // namespace tessera
