#pragma once

#include <optional>
#include <vector>

#include "engine/nn/batch_norm.h"
#include "engine/nn/conv2d.h"
#include "models/architectures.h"
#include "models/parts/block.h"
#include "models/parts/token_labels.h"
#include "models/parts/tokenizer.h"

namespace tessera {

/// LV-ViT (Jiang et al., 2021) and SP-ViT (Zhou et al., 2022), arch "lvvit":
///
///   x = stem(image) + pos
///   x = SP-SA block(x)                     sp_layers times, on patches only
///   x = block([cls; x])                    the other blocks, with plain attention
///   logits = head(LN(x_cls)),  aux = aux_head(LN(x_patches))
///
/// With sp_layers 0 (LV-ViT) the class token takes part from the first block and has a position. A block
/// divides both of its residual branches by skip_lam; with pos_cnn a depthwise 3 x 3 convolution of the
/// patches follows it. A dense model is trained by token labelling and classifies by logits + 0.5 max over
/// patches of aux.
///
/// training_loss of a dense model takes a teacher's soft "target" [B, K] and "aux_target" [B, N, K], or
/// "target" as any classifier does. With mix_token, images exchange a box of tokens: that of "box" i64 [4],
/// that of the mask "inside" [N, 1], or a drawn one.
struct LvVit {
  LvVit(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  ///< [B, C, H, W] -> [B, K]
  /// The outputs of a fixture. A dense model's are logits, aux_logits and the token label loss of "target"
  /// and "aux_target" with tokens exchanged by "box", and in evaluation mode eval_logits; another model's are
  /// logits and cross entropy.
  TensorMap evaluate(const TensorMap& inputs, Pass& pass) const;
  /// Draws the box of a training step on the host: its mask "inside", or nothing if no tokens are exchanged.
  TensorMap draw(const TensorMap& inputs, Pass& pass) const;
  TrainingLoss training_loss(const TensorMap& inputs, const LossOptions& options, Pass& pass) const;
  /// A teacher's targets, see Model::token_targets.
  TokenTargets token_targets(const Tensor& maps, const Tensor& views) const {
    return tessera::token_targets(maps, views, grid, num_classes);
  }

  /// Three convolutions at half the image's size, then patches of P/2 x P/2. With directions, the input is
  /// the image and its shifted copies (SPT).
  struct ConvStem {
    struct Options {
      int64_t patch_size = 0, channels = 64;
      std::optional<Directions> directions;
      double ratio = 0.5;
    };

    ConvStem(const Scope& scope, const Options& options, int64_t in_channels, int64_t dim);
    Tensor operator()(const Tensor& image, const Pass& pass) const;  ///< [B, C, H, W] -> [B, N, D]

    Options options;
    Conv2d conv1, conv2, conv3;
    BatchNorm bn1, bn2, bn3;
    Conv2d proj;
    std::string path;
  };

  struct Layer {
    Tensor operator()(const Tensor& x, const Tensor& omega, Pass& pass) const;  ///< [B, N, D] -> [B, N, D]
    Tensor patches(const Tensor& x) const;                                      ///< without the class token

    Block block;
    std::optional<Conv2d> pos_cnn;
  };

  /// The tokens after the last block, [B, 1 + N, D], and the maps [B, h, w, D] after the blocks numbered in
  /// `wanted`. `inside` is the mask of the box that images exchange (parts/token_labels.h), or undefined.
  struct Features {
    Tensor tokens;
    std::vector<Tensor> maps;
  };
  Features features(const Tensor& image, Pass& pass, const Tensor& inside = {},
                    const std::vector<int64_t>& wanted = {}) const;

  /// A dense model's logits [B, K] and aux [B, N, K]; aux is swapped back after an exchange of tokens.
  struct Dense {
    Tensor logits, aux;
  };
  Dense dense(const Tensor& image, Pass& pass, const Tensor& inside = {}) const;

  std::optional<ConvStem> conv_stem;
  Tokenizer patch_embed;        ///< used if there is no conv_stem
  Tensor cls_token, pos_embed;  ///< [1, 1, D], [1, (1 +) N, D]
  std::optional<SpatialPrior> prior;
  std::vector<Layer> blocks;
  LayerNorm norm;
  Linear head;
  std::optional<Linear> aux_head;  ///< of a dense model
  Grid grid;
  int64_t sp_layers = 0, num_classes = 0;  ///< num_classes 0: a backbone without norm and heads
  bool is_dense = false, mix_token = false;
};

/// The config of lvvit-s or sp-vit-t, -s, -m, -l; models/segment.cpp builds its backbones from it.
Json lvvit_preset(const std::string& name, int64_t image_size, int64_t num_classes);

Architecture lvvit_architecture();

}  // namespace tessera
