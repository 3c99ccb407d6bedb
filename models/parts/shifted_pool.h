#pragma once

#include <optional>

#include "models/parts/tokenizer.h"

namespace tessera {

// S_pool: shifted patch tokenization of the map of visual tokens, 2 x 2 of them to one, in place of a staged
// model's own pooling. A class token, where there is one, goes through a linear layer of its own.
struct ShiftedPool {
  struct Options {
    Directions directions = Directions::diagonal;
    double ratio = 0.5;
  };

  ShiftedPool() = default;
  ShiftedPool(const Scope& scope, const Options& options, int64_t in_dim, int64_t dim, Grid grid,
              bool has_cls, double eps);

  Tensor operator()(const Tensor& x) const;  // [B, (1 +) h w, in_dim] -> [B, (1 +) h w / 4, dim]

  Tokenizer tokens;
  std::optional<Linear> fc;
  Grid grid;
};

// The config's "pool" object: S_pool's options, or none for the architecture's own pooling, of kind
// `own_kind`.
std::optional<ShiftedPool::Options> read_pool(Fields& fields, const char* own_kind);

}  // namespace tessera
