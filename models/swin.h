#pragma once

#include <optional>
#include <vector>

#include "models/model.h"
#include "models/parts/block.h"
#include "models/parts/shifted_pool.h"

namespace tessera {

// The shifted-window transformer (Liu et al., 2021): attention inside windows of w x w tokens, moved by w / 2
// in every second block, patches merged between the stages. No class token: the logits come from the mean of
// the normed tokens.
struct Swin {
  Swin(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  // [B, C, H, W] -> [B, K]

  struct WindowBlock {
    WindowBlock(const Scope& scope, int64_t dim, const AttentionOptions& attention, Grid grid, int64_t window,
                bool moved, int64_t hidden, double drop_path, double eps);
    Tensor operator()(const Tensor& x, Pass& pass) const;  // [B, h w, D] -> [B, h w, D]

    LayerNorm norm1;
    Attention attn;
    LayerNorm norm2;
    Mlp mlp;
    Grid grid;
    double drop_path = 0;
    Tensor to_windows, from_windows;  // the order of the tokens window by window, and back
    Tensor mask;                      // [windows, w w, w w], where the windows are moved
    int64_t window_tokens = 0;
    std::string path;
  };

  // W LN([x(2i, 2j); x(2i+1, 2j); x(2i, 2j+1); x(2i+1, 2j+1)])
  struct PatchMerging {
    PatchMerging(const Scope& scope, int64_t dim, Grid grid, double eps);
    Tensor operator()(const Tensor& x) const;  // [B, h w, D] -> [B, h w / 4, 2 D]

    LayerNorm norm;
    Linear reduction;
    Grid grid;
  };

  // The pooling that leads to it (none for the first), then its blocks.
  struct Layer {
    std::optional<PatchMerging> merging;
    std::optional<ShiftedPool> shifted_pool;
    std::vector<WindowBlock> blocks;
  };

  Tokenizer patch_embed;
  Tensor pos_embed;  // [1, N, D], or undefined
  std::vector<Layer> layers;
  LayerNorm norm;
  Linear head;
};

// swin, s-swin (SPT), l-swin (LSA), sl-swin, sl-swin-spool (S_pool too); an empty Json for another name.
Json swin_preset(const std::string& name, int64_t image_size, int64_t num_classes);

}  // namespace tessera
