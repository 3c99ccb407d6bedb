#pragma once

#include "engine/ops/shape.h"

namespace tessera {

// Puts the class token in front of each image's tokens. cls [1, 1, D], x [B, N, D] -> [B, 1 + N, D]
inline Tensor with_class_token(const Tensor& cls, const Tensor& x) {
  return concat({broadcast_to(cls, {x.dim(0), 1, x.dim(2)}), x}, 1);
}

// Takes the first token, which the class token is, of each image. [B, 1 + N, D] -> [B, 1, D]
inline Tensor first_token(const Tensor& x) { return slice(x, 1, 0, 1); }

// Takes the first token of each image without the axis of tokens. [B, 1 + N, D] -> [B, D]
inline Tensor class_token_of(const Tensor& x) { return first_token(x).reshape({x.dim(0), x.dim(2)}); }

}  // namespace tessera
