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

/// Stochastic depth (Huang et al., 2016) around a residual branch f: y = x + f m / (1 - p), one m for each
/// image (entry of axis 0). p = 0 is the plain residual x + f. Fails unless x and f have one shape and type.
Tensor drop_path(const Tensor& x, const Tensor& branch, double p, uint64_t key);

}  // namespace tessera
