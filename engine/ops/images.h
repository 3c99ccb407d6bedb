#pragma once

#include "engine/core/tensor.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// Some images (entries of axis 0) of a batch, for ops that compute those alone.

// Fails in the name of `op` unless `images` is i64 [K] on the host, rising, K above 0, each below `batch`.
void check_images(const char* op, const Tensor& images, int64_t batch);

// Kernels take images of x where they lie on a CPU, unless somebody looks at each op: true. Elsewhere take()
// copies them: false.
bool has_image_kernels(const Tensor& x);

// `images` as kernels take them; null for an undefined tensor.
ImageList list_of(const Tensor& images);

}  // namespace tessera
