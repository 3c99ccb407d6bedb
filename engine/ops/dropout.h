#pragma once

#include <cstdint>

#include "engine/core/tensor.h"

namespace tessera {

// What a key draws depends on the key and the place alone (philox): the backward pass draws it again. All
// fail unless 0 <= p < 1.

// Dropout (Srivastava et al., 2014): y = x m / (1 - p), each m 0 with probability p, else 1. p = 0 gives x
// itself.
Tensor dropout(const Tensor& x, double p, uint64_t key);

// The same for whole channels of x [B, ..., C], one m for each of an image (Tompson et al., 2015; PyTorch's
// Dropout2d).
Tensor channel_dropout(const Tensor& x, double p, uint64_t key);

// Stochastic depth (Huang et al., 2016) around a residual branch f: y = x + f m / (1 - p), one m for each
// image (entry of axis 0). p = 0 is the plain residual x + f. x, f of one shape.
Tensor drop_path(const Tensor& x, const Tensor& branch, double p, uint64_t key);

}  // namespace tessera
