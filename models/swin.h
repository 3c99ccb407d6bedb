#pragma once

#include <optional>
#include <vector>

#include "models/architectures.h"
#include "models/parts/block.h"
#include "models/parts/shifted_pool.h"

namespace tessera {

/// The shifted-window transformer (Liu et al., 2021): attention inside windows of w x w tokens, which every
/// second block shifts by w / 2; patch merging between the stages. There is no class token.
///
///   x = T(image) + pos
///   x = merge(x)                                                before every stage but the first
///   x = x + window attention(LN(x));  x = x + MLP(LN(x))        depth_i times
///   logits = head(mean over tokens of LN(x))
struct Swin {
  Swin(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  ///< [B, C, H, W] -> [B, K]
  /// The last stage's tokens, [B, h w, D]. `maps` takes the map of every stage, [B, h, w, D].
  Tensor features(const Tensor& image, Pass& pass, std::vector<Tensor>* maps = nullptr) const;

  /// Windows of size x size tokens. A map that is no larger is one window and is not shifted.
  struct Windows {
    int64_t size;
    bool shifted;
  };

  /// The tokens stay in the order of a block's windows, one window after another, until the next block needs
  /// another order: norms, MLPs and residuals do not mind.
  struct WindowBlock {
    /// `order` is the order that the block before leaves the tokens in (the raster index of each), and
    /// becomes this one's.
    WindowBlock(const Scope& scope, int64_t dim, const AttentionOptions& attention, Grid grid,
                Windows windows, int64_t hidden, double drop_path, double eps, std::vector<int64_t>& order);
    /// [B, h w, D] in the order of the block before -> [B, h w, D] in that of this block's windows
    Tensor operator()(const Tensor& before, Pass& pass) const;

    LayerNorm norm1;
    Attention attn;
    LayerNorm norm2;
    Mlp mlp;
    Grid grid;
    double drop_path = 0;
    Tensor from_before;  ///< [N] i64: the places of its tokens in the order before; undefined: the same order
    Tensor to_windows;   ///< [N] i64: the raster index of the token at each place
    Tensor mask;         ///< [windows, w w, w w], if the windows are shifted
    int64_t window_tokens = 0;
    std::string path;
  };

  /// W LN([x(2i, 2j); x(2i+1, 2j); x(2i, 2j+1); x(2i+1, 2j+1)])
  struct PatchMerging {
    PatchMerging(const Scope& scope, int64_t dim, Grid grid, double eps);
    Tensor operator()(const Tensor& x) const;  ///< [B, h w, D] -> [B, h w / 4, 2 D]

    LayerNorm norm;
    Linear reduction;
    Grid grid;
  };

  /// The merging or pooling before the stage (none before the first), then its blocks.
  struct Layer {
    std::optional<PatchMerging> merging;
    std::optional<ShiftedPool> shifted_pool;
    std::vector<WindowBlock> blocks;
    Tensor to_raster;  ///< [N] i64: from the last block's order; undefined: it is the raster's
  };

  Tokenizer patch_embed;
  Tensor pos_embed;  ///< [1, N, D], or undefined
  std::vector<Layer> layers;
  std::vector<int64_t> dims;  ///< of the stages
  LayerNorm norm;             ///< with num_classes 0 the network is a backbone, without norm and head
  Linear head;
};

Architecture swin_architecture();

}  // namespace tessera
