#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/nn/layer_norm.h"
#include "engine/nn/pass.h"
#include "models/parts/attention.h"
#include "models/parts/mlp.h"

namespace tessera {

/// Draws which images drop a residual branch: in training each with probability `rate`.
PathDraw draw_path(double rate, Pass& pass);

/// The draws of a block's two branches of x [B, ...], for branches that treat every image by itself. Where
/// the pass wants the answer only, on a CPU, the images that drop a branch are left out of its computation
/// (as in DINOv2; Oquab et al., 2023): exact, because what they would compute is multiplied by 0.
struct BlockDraws {
  BlockDraws(const Tensor& x, double rate, Pass& pass);

  PathDraw attention, mlp;
};

/// A pre-norm transformer block; training drops its branches per image (stochastic depth):
///   x = x + c Attention(LN(x));  x = x + c MLP(LN(x)),  c = branch_scale
struct Block {
  Block() = default;
  Block(const Scope& scope, int64_t dim, const AttentionOptions& attention, Grid grid, int64_t prefix,
        int64_t hidden, double drop_path, double eps);

  /// x [B, N, D] -> [B, N, D]; omega [1, N, N] is the prior that the whole model shares, or undefined.
  Tensor operator()(const Tensor& x, const Tensor& omega, Pass& pass) const;

  /// Row 0 of that, [B, 1, D], without the other rows' queries, projections and MLP.
  Tensor of_first(const Tensor& x, const Tensor& omega, Pass& pass) const;

  LayerNorm norm1;
  Attention attn;
  LayerNorm norm2;
  Mlp mlp;
  double drop_path = 0;
  double branch_scale = 1;  ///< LV-ViT's 1 / skip_lam
  std::string path;

 private:
  Tensor after_attention(const Tensor& x, const Tensor& attended, const BlockDraws& draws) const;
};

/// The class token, row 0, of what the blocks make one after another of x [B, N, D]; -> [B, D]. Of the last
/// block's rows the others are left out where the pass wants the answer only, on a CPU.
Tensor class_token_after(std::span<const Block> blocks, Tensor x, const Tensor& omega, Pass& pass);

/// Whether a last block may leave out all tokens but the class token: where the pass wants the answer only,
/// on a CPU. (On a GPU that has not been measured.)
bool leaves_out_tokens(const Tensor& x, const Pass& pass);

/// Reads the config's `key` as a drop probability. Fails unless it is at least 0 and below 1.
double read_rate(Fields& fields, const char* key, double otherwise = 0);

/// Reads "drop_path" and "drop_path_rule" into one rate per block. Rule `constant` gives every block the
/// rate; `linear` rises from 0 at the first block to the rate at the last.
std::vector<double> drop_rates(Fields& fields, int64_t blocks, const char* default_rule);

}  // namespace tessera
