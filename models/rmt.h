#pragma once

#include <optional>
#include <vector>

#include "engine/nn/batch_norm.h"
#include "engine/nn/conv2d.h"
#include "models/model.h"
#include "models/parts/block.h"
#include "models/parts/tokenizer.h"

namespace tessera {

// RMT (Fan et al., CVPR 2024), and with gates that look at the tokens the Spatial Decay Transformer (Mao et
// al., 2025; models/sdt.h): a hierarchy of stages whose attention decays with the distance on the grid.
//
//   x = stem(image)
//   x = x + pos(x);  x = x + Attention(LN(x));  x = x + MLP(LN(x))      depth_i times, then halved
//   logits = head(mean over tokens of silu(BN(proj(x))))
//
// pos is a 3 x 3 depthwise convolution. A stage's attention takes all pairs of tokens, or it is decomposed:
// within each row of the grid, then within each column.
//
// Beyond the reference, the keys of ViT's "attention" are taken too (scale, mask_diagonal, prior,
// relative_bias), in the decomposed form by the entries for the pairs of a line; and the tokenizers patch and
// shifted in place of the stem, or SPT's shifted copies in front of it ("directions" in conv_stem).
struct RMT {
  RMT(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  // [B, C, H, W] -> [B, K]

  // Four 3 x 3 convolutions, a batch norm after each, gelu between them; SPT's copies of the image before
  // the first if they are asked for.
  struct ConvStem {
    ConvStem(const Scope& scope, Fields options, int64_t in_channels, int64_t dim, int64_t image_size);
    Tensor operator()(const Tensor& image, const Pass& pass) const;  // [B, C, H, W] -> [B, h w, D]

    std::vector<Conv2d> convs;
    std::vector<BatchNorm> norms;
    std::optional<Directions> directions;
    int64_t shift = 0;  // pixels
    Grid grid;          // of the tokens
  };

  struct StageAttention {
    AttentionOptions scores;
    bool decomposed = false, rope = true;
    int64_t lepe = 5;  // kernel; 0 for none
  };

  //   q, k, v = W x;  q, k turned by the rotary angles
  //   y = softmax(terms(q k^T)) v, of all pairs;
  //       or decomposed, y = columns(rows(v)), each that softmax within a line, with the same q and k
  //   proj(y + lepe(v)),  lepe a depthwise convolution
  struct DecayAttention {
    DecayAttention(const Scope& scope, int64_t dim, const StageAttention& options, Grid grid);
    Tensor operator()(const Tensor& x) const;  // [B, h w, D] -> [B, h w, D]

    Attention attention;  // its projections and score terms
    std::optional<Conv2d> lepe;
    Tensor turns;  // [N, d / 2, 2], where the config has rope
    bool decomposed = false;

   private:
    Tensor projected(const Tensor& x, int64_t part) const;
    Tensor over_all(const Tensor& x, const Tensor& q, const Tensor& k, const Tensor& v) const;
    Tensor within(Lines lines, const Tensor& x, const Tensor& q, const Tensor& k, const Tensor& v) const;
  };

  // h = gelu(fc1(x));  fc2(h + dwconv(h))
  struct ConvMlp {
    ConvMlp(const Scope& scope, int64_t dim, int64_t hidden, Grid grid);
    Tensor operator()(const Tensor& x) const;  // [B, h w, D] -> [B, h w, D]

    Linear fc1, fc2;
    Conv2d dwconv;
    Grid grid;
  };

  struct Block {
    Block(const Scope& scope, int64_t dim, const StageAttention& attention, Grid grid, int64_t hidden,
          double layer_scale, double drop_path);
    Tensor operator()(const Tensor& x, Pass& pass) const;  // [B, h w, D] -> [B, h w, D]

    Conv2d pos;
    LayerNorm norm1;
    DecayAttention attn;
    LayerNorm norm2;
    ConvMlp mlp;
    Tensor ls1, ls2;  // [D], layer scale (Touvron et al., 2021), where the stage has it
    double drop_path = 0;
    Grid grid;
    std::string path;
  };

  // A 3 x 3 convolution of stride 2 and a batch norm.
  struct Downsample {
    Downsample(const Scope& scope, int64_t dim, int64_t dim_out, Grid grid);
    Tensor operator()(const Tensor& x,
                      const Pass& pass) const;  // [B, h w, D] -> [B, ceil(h/2) ceil(w/2), D']

    Conv2d reduction;
    BatchNorm norm;
    Grid grid;
  };

  // Its blocks, then what leads to the next stage.
  struct Layer {
    std::vector<Block> blocks;
    std::optional<Downsample> downsample;
  };

  std::optional<ConvStem> stem;
  std::optional<Tokenizer> tokens;  // in its place
  std::vector<Layer> layers;
  Linear proj;
  BatchNorm norm;
  Linear head;
};

// rmt-t, rmt-s, rmt-b, rmt-l as the paper sizes them, rmt-xt for images of 32 or 64 pixels; an empty Json for
// another name.
Json rmt_preset(const std::string& name, int64_t image_size, int64_t num_classes);

// What RMT and SDT share: a preset of `arch` ("rmt", "sdt") at the size xt, t, s, b or l, the first
// `decomposed` stages in decomposed form, with this decay.
Json decay_net_preset(const std::string& arch, const std::string& size, int64_t decomposed, const Json& decay,
                      int64_t image_size, int64_t num_classes);
// RMT's decay, "range" one value a stage or one for all.
Json fixed_decay_config(const Json& range);

}  // namespace tessera
