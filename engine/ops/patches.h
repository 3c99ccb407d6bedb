#pragma once

#include <cstdint>

#include "engine/core/tensor.h"

namespace tessera {

/// An image cut into size x size patches, row by row, each flattened as (c, p1, p2): [B, C, H, W] -> [B, N, C
/// P P]. A linear map of a patch is therefore a convolution's weight, reshaped. Fails unless P divides H and
/// W.
Tensor patches(const Tensor& image, int64_t size);

/// The directions of the shifted copies: left, right, up and down; the four diagonals; or all eight, in this
/// order.
enum class Directions : uint8_t { cardinal, diagonal, all };

/// The image and its copies, each shifted by `shift` pixels along a direction, zero outside (Lee et al.,
/// "Vision Transformer for Small-Size Datasets", 2021): x_d(i, j) = x(i + shift dy_d, j + shift dx_d); [B, C,
/// H, W] -> [B, C (1 + directions), H, W], the image itself first.
Tensor shifted_copies(const Tensor& image, Directions directions, int64_t shift);

/// patches(shifted_copies(image, directions, shift), size), gathered from the image without making the
/// copies. [B, C, H, W] -> [B, N, C (1 + directions) P P]. Fails as those two do.
Tensor shifted_patches(const Tensor& image, int64_t size, Directions directions, int64_t shift);

}  // namespace tessera
