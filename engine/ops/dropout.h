#pragma once

#include <cstdint>

#include "engine/core/tensor.h"

namespace tessera {

// The random numbers depend on the key and the element's index alone (Philox), so the backward pass draws
// them again instead of storing a mask. All functions fail unless 0 <= p < 1.

/// Dropout (Srivastava et al., 2014): y = x m / (1 - p), each m is 0 with probability p, otherwise 1. p = 0
/// returns x itself.
Tensor dropout(const Tensor& x, double p, uint64_t key);

/// Dropout of whole channels of x [B, ..., C]: one m for each channel of an image (Tompson et al., 2015;
/// PyTorch's Dropout2d).
Tensor channel_dropout(const Tensor& x, double p, uint64_t key);

/// A draw of stochastic depth for one residual branch: each image (entry of axis 0) drops it with probability
/// p, by `key`.
struct PathDraw {
  double p = 0;
  uint64_t key = 0;
  /// The images of which the branch is computed, i64 [K] in rising order; those that keep it are among them.
  /// Undefined: all.
  Tensor images = {};
};

/// The images of a batch that keep the branch, as PathDraw::images. Where none does it is image 0, whose
/// factor is 0, so that the branch's parameters have their gradients: zeros. Undefined where all keep it.
Tensor kept_images(int64_t images, double p, uint64_t key);

/// Stochastic depth (Huang et al., 2016) around a residual branch f: y = x + f m / (1 - p), one m for each
/// image. p = 0 is the plain residual x + f. f has the shape of x, or with `draw.images` K images of it; the
/// others keep their x. Fails unless x and f have one type and these shapes, and if an image that keeps its
/// branch is none of them.
Tensor drop_path(const Tensor& x, const Tensor& branch, const PathDraw& draw);

}  // namespace tessera
