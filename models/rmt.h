#pragma once

#include <array>
#include <optional>
#include <vector>

#include "engine/nn/batch_norm.h"
#include "engine/nn/conv2d.h"
#include "models/architectures.h"
#include "models/parts/block.h"
#include "models/parts/tokenizer.h"

namespace tessera {

/// RMT (Fan et al., CVPR 2024): a hierarchy of stages whose attention decays with the distance on the grid.
/// With a decay computed from the tokens it is the Spatial Decay Transformer (models/sdt.h).
///
///   x = stem(image)
///   x = x + pos(x);  x = x + Attention(LN(x));  x = x + MLP(LN(x))      depth_i times, then downsampled
///   logits = head(mean over tokens of silu(BN(proj(x))))
///
/// pos is a 3 x 3 depthwise convolution. A stage's attention is over all pairs of tokens, or decomposed:
/// within each row of the grid, then within each column.
///
/// Beyond the papers, a config may have the other keys of ViT's "attention" (scale, mask_diagonal, prior,
/// relative_bias), of which decomposed attention takes the entries for the pairs within a line; the
/// tokenizers patch and shifted in place of the stem; and SPT's shifted copies in front of the stem
/// ("directions").
struct RMT {
  RMT(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  ///< [B, C, H, W] -> [B, K]
  /// The last stage's tokens, [B, h w, D]. `maps` takes the map of every stage, [B, h, w, D].
  Tensor features(const Tensor& image, Pass& pass, std::vector<Tensor>* maps = nullptr) const;

  /// Four 3 x 3 convolutions, each with a batch norm, gelu between them. With directions, the input is the
  /// image and its shifted copies (SPT).
  struct ConvStem {
    ConvStem(const Scope& scope, Fields options, int64_t in_channels, int64_t dim, int64_t image_size);
    Tensor operator()(const Tensor& image, const Pass& pass) const;  ///< [B, C, H, W] -> [B, h w, D]

    std::vector<Conv2d> convs;
    std::vector<BatchNorm> norms;
    std::optional<Directions> directions;
    int64_t shift = 0;  ///< pixels
    Grid grid;          ///< of the tokens
    std::string path;
  };

  struct StageAttention {
    AttentionOptions scores;
    bool decomposed = false, rope = true;
    int64_t lepe = 5;  ///< kernel size; 0: none
  };

  ///   q, k, v = W x;  q, k turned by the rotary angles
  ///   y = softmax(terms(q k^T)) v                all pairs, or
  ///   y = columns(rows(v))                       decomposed: the softmax within each line, of the same q, k
  ///   proj(y + lepe(v)),  lepe a depthwise convolution
  struct DecayAttention {
    DecayAttention(const Scope& scope, int64_t dim, const StageAttention& options, Grid grid);
    Tensor operator()(const Tensor& x) const;  ///< [B, h w, D] -> [B, h w, D]

    Attention attention;  ///< its projections and score terms
    std::optional<Conv2d> lepe;
    Tensor turns;  ///< [N, d / 2, 2], if the config has rope
    bool decomposed = false;

   private:
    std::array<Tensor, 3> projected(const Tensor& x) const;
    Tensor over_all(const Tensor& x, const Tensor& q, const Tensor& k, const Tensor& v) const;
    Tensor within(Lines lines, const Tensor& x, const Tensor& q, const Tensor& k, const Tensor& v) const;
  };

  /// h = gelu(fc1(x));  fc2(h + dwconv(h))
  struct ConvMlp {
    ConvMlp(const Scope& scope, int64_t dim, int64_t hidden, Grid grid);
    Tensor operator()(const Tensor& x) const;  ///< [B, h w, D] -> [B, h w, D]

    Linear fc1, fc2;
    Conv2d dwconv;
    Grid grid;
    std::string path;
  };

  /// gamma x (Touvron et al., 2021), or x where the stage has none.
  struct LayerScale {
    LayerScale() = default;
    LayerScale(const Scope& scope, int64_t dim, double initial);
    Tensor operator()(const Tensor& x) const;

    Tensor gamma;  ///< [D]
    std::string path;
  };

  struct Block {
    Block(const Scope& scope, int64_t dim, const StageAttention& attention, Grid grid, int64_t hidden,
          double layer_scale, double drop_path);
    Tensor operator()(const Tensor& x, Pass& pass) const;  ///< [B, h w, D] -> [B, h w, D]

    Conv2d pos;
    LayerNorm norm1;
    DecayAttention attn;
    LayerNorm norm2;
    ConvMlp mlp;
    LayerScale ls1, ls2;
    double drop_path = 0;
    Grid grid;
    std::string path;
  };

  /// A 3 x 3 convolution of stride 2 and a batch norm.
  struct Downsample {
    Downsample(const Scope& scope, int64_t dim, int64_t dim_out, Grid grid);
    Tensor operator()(const Tensor& x,
                      const Pass& pass) const;  ///< [B, h w, D] -> [B, ceil(h/2) ceil(w/2), D']

    Conv2d reduction;
    BatchNorm norm;
    Grid grid;
    std::string path;
  };

  /// A stage: its blocks, then the downsampling to the next stage.
  struct Layer {
    std::vector<Block> blocks;
    std::optional<Downsample> downsample;
  };

  std::optional<ConvStem> stem;
  std::optional<Tokenizer> tokens;  ///< in place of the stem
  std::vector<Layer> layers;
  std::vector<int64_t> dims;  ///< of the stages
  Linear proj;                ///< with num_classes 0 the network is a backbone, without proj, norm and head
  BatchNorm norm;
  Linear head;
};

Architecture rmt_architecture();

/// A preset of RMT or SDT (`arch` "rmt" or "sdt") at the size xt, t, s, b or l, with this decay and the first
/// `decomposed` stages in decomposed form.
Json decay_net_preset(const std::string& arch, const std::string& size, int64_t decomposed, const Json& decay,
                      int64_t image_size, int64_t num_classes);
/// RMT's "attention.decay"; `range` is one value for all stages or a list by stage.
Json fixed_decay_config(const Json& range);

}  // namespace tessera
