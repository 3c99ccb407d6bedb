#pragma once

#include <optional>

#include "models/parts/tokenizer.h"

namespace tessera {

/// S_pool (the SPT and LSA paper): shifted patch tokenization of the token map, which turns 2 x 2 tokens into
/// one, in place of a staged model's own pooling. A class token takes a linear layer of its own.
struct ShiftedPool {
  struct Options {
    Directions directions = Directions::diagonal;
    double ratio = 0.5;
  };

  ShiftedPool() = default;
  ShiftedPool(const Scope& scope, const Options& options, int64_t in_dim, int64_t dim, Grid grid,
              bool has_cls, double eps);

  Tensor operator()(const Tensor& x) const;  ///< [B, (1 +) h w, in_dim] -> [B, (1 +) h w / 4, dim]

  Tokenizer tokens;
  std::optional<Linear> fc;
  Grid grid;
};

/// Reads the config's "pool" object: S_pool's options, or none for the architecture's own pooling, whose kind
/// is `own_kind`.
std::optional<ShiftedPool::Options> read_pool(Fields& fields, const char* own_kind);

}  // namespace tessera
