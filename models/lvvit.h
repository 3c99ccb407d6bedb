#pragma once

#include <optional>
#include <vector>

#include "engine/nn/batch_norm.h"
#include "engine/nn/conv2d.h"
#include "models/model.h"
#include "models/parts/block.h"
#include "models/parts/token_labels.h"
#include "models/parts/tokenizer.h"

namespace tessera {

// LV-ViT (Jiang et al., 2021) and SP-ViT (Zhou et al., 2022), arch "lvvit":
//
//   x = stem(image) + pos
//   x = SP-SA block(x)                     sp_layers times, patches only
//   x = block([cls; x])                    the others, of plain attention
//   logits = head(LN(x_cls)),  aux = aux_head(LN(x_patches))
//
// With sp_layers 0 the class token is there from the start and has a position: that is LV-ViT. A block
// divides both of its residual branches by skip_lam; with pos_cnn a depthwise 3 x 3 convolution of the
// patches follows it. A dense model is trained by token labelling, and classifies by logits + 0.5 max over
// patches of aux.
//
// training_loss of a dense model: "target" [B, K] soft and "aux_target" [B, N, K], of a teacher, or "target"
// as for any classifier; with mix_token, boxes of tokens are exchanged: a given "box" i64 [4], or its mask
// "inside" [N, 1], else a drawn one.
struct LvVit {
  LvVit(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  // [B, C, H, W] -> [B, K]
  // Of a dense model logits, aux_logits and the token label loss of "target", "aux_target", swapped by "box";
  // in evaluation the whole model's eval_logits too. Of another logits and cross entropy.
  TensorMap evaluate(const TensorMap& inputs, Pass& pass) const;
  // What a training step draws on the host: "inside", if there is a box.
  TensorMap draw(const TensorMap& inputs, Pass& pass) const;
  TrainingLoss training_loss(const TensorMap& inputs, const LossOptions& options, Pass& pass) const;
  // See Model::token_targets.
  TokenTargets token_targets(const Tensor& maps, const Tensor& views) const {
    return tessera::token_targets(maps, views, grid, num_classes);
  }

  // Three convolutions at half the image's size, then patches of P/2 x P/2. Given directions, SPT's shifted
  // copies of the image go in beside it.
  struct ConvStem {
    struct Options {
      int64_t patch_size = 0, channels = 64;
      std::optional<Directions> directions;
      double ratio = 0.5;
    };

    ConvStem(const Scope& scope, const Options& options, int64_t in_channels, int64_t dim);
    Tensor operator()(const Tensor& image, const Pass& pass) const;  // [B, C, H, W] -> [B, N, D]

    Options options;
    Conv2d conv1, conv2, conv3;
    BatchNorm bn1, bn2, bn3;
    Conv2d proj;
    std::string path;
  };

  struct Layer {
    Tensor operator()(const Tensor& x, const Tensor& omega, Pass& pass) const;  // [B, N, D] -> [B, N, D]
    Tensor patches(const Tensor& x) const;                                      // without the class token

    Block block;
    std::optional<Conv2d> pos_cnn;
  };

  // The tokens after the last block, [B, 1 + N, D], and the maps [B, h, w, D] after the `wanted` ones.
  // `inside` is the mask of a box that is exchanged, see parts/token_labels.h; undefined: none is.
  struct Features {
    Tensor tokens;
    std::vector<Tensor> maps;
  };
  Features features(const Tensor& image, Pass& pass, const Tensor& inside = {},
                    const std::vector<int64_t>& wanted = {}) const;

  // Of a dense model, [B, K] and [B, N, K]; a box is swapped back.
  struct Dense {
    Tensor logits, aux;
  };
  Dense dense(const Tensor& image, Pass& pass, const Tensor& inside = {}) const;

  std::optional<ConvStem> conv_stem;
  Tokenizer patch_embed;        // where the stem is none of convolutions
  Tensor cls_token, pos_embed;  // [1, 1, D], [1, (1 +) N, D]
  std::optional<SpatialPrior> prior;
  std::vector<Layer> blocks;
  LayerNorm norm;
  Linear head;
  std::optional<Linear> aux_head;  // of a dense model
  Grid grid;
  int64_t sp_layers = 0, num_classes = 0;  // no classes: no norm and no heads, a backbone
  bool is_dense = false, mix_token = false;
};

// lvvit-s, sp-vit-t, -s, -m, -l; an empty Json for another name.
Json lvvit_preset(const std::string& name, int64_t image_size, int64_t num_classes);

}  // namespace tessera
