#pragma once

#include <optional>
#include <vector>

#include "models/diffusion.h"
#include "models/model.h"
#include "models/parts/attention.h"
#include "models/parts/mlp.h"
#include "models/parts/tokenizer.h"

namespace tessera {

// DiT (Peebles and Xie, 2023): a transformer that predicts the noise in an image, told the time and the
// class.
//
//   h = T(x) + positions;  c = t_embed(t) + y_embed[y]
//   shift1, scale1, gate1, shift2, scale2, gate2 = adaln(silu(c))
//   h = h + gate1 * Attention((1 + scale1) * LN(h) + shift1)
//   h = h + gate2 * MLP((1 + scale2) * LN(h) + shift2)                  depth times
//   shift, scale = final.adaln(silu(c))
//   out = unpatchify(final.proj((1 + scale) * LN(h) + shift))
//
// LN has no parameters of its own. Every adaln starts at zero, so that each block starts as the identity. A
// content gate sees what q, k and v see, and so depends on the time and the class too.
struct DiT {
  DiT(const Json& config, const Scope& scope);

  // x [B, C, H, W], times and labels [B] i64 -> [B, C, H, W], or [B, 2 C, H, W] with learn_sigma: the noise,
  // then v for the variance.
  Tensor operator()(const Tensor& x, const Tensor& times, const Tensor& labels) const;
  // Its answer at time 0 for class 0: what it costs.
  Tensor operator()(const Tensor& images, Pass& pass) const;

  // The reference's fixture: input, noise, t, y -> logits and loss on the input as it is; a training step and
  // both samplers on it as a clean image.
  TensorMap evaluate(const TensorMap& inputs, Pass& pass) const;
  // What a training step draws: the images' times "t" and the labels "y" that the network is told, some of
  // them none, both [B] i64 on the CPU. Fails for labels that are no class.
  TensorMap draw(const TensorMap& inputs, Pass& pass) const;
  // The loss of clean images "input" [B, C, H, W] of classes "target" [B] i64, at times "t" told labels "y",
  // drawn from the pass where they are not given, with noise that it draws; and the network's answer. Fails
  // for mixed or smoothed targets.
  TrainingLoss training_loss(const TensorMap& inputs, const LossOptions& options, Pass& pass) const;
  // Images of the classes `labels` [B], from noise that `pass` draws. Nothing is recorded.
  Tensor sample(const Tensor& labels, const SampleOptions& options, Pass& pass) const;
  // Holds a pointer to this.
  Denoiser denoiser() const;

  // fc2(silu(fc1([cos(t w), sin(t w)]))),  w_k = 10000^(-k / half) for k < half, `time_dim` = 2 half
  struct TimeEmbedding {
    TimeEmbedding() = default;
    TimeEmbedding(const Scope& scope, int64_t steps, int64_t time_dim, int64_t dim);
    Tensor operator()(const Tensor& times) const;  // [B] -> [B, D]

    Linear fc1, fc2;
    Tensor waves;  // [T, time_dim], constants: of each time
  };

  struct Block {
    Block(const Scope& scope, int64_t dim, const AttentionOptions& attention, Grid grid, int64_t hidden);
    // x [B, N, D]; condition [B, D], silu(c); omega [1, N, N], the model's own prior, or undefined
    Tensor operator()(const Tensor& x, const Tensor& condition, const Tensor& omega) const;

    Attention attn;
    Mlp mlp;
    Linear adaln;
    std::string path;
  };

  struct FinalLayer {
    FinalLayer() = default;
    FinalLayer(const Scope& scope, int64_t dim, int64_t out);
    Tensor operator()(const Tensor& x,
                      const Tensor& condition) const;  // [B, N, D], [B, D] -> [B, N, P P out]

    Linear adaln, proj;
    std::string path;
  };

  Tokenizer patch_embed;
  Tensor positions;  // [1, N, D], constants
  TimeEmbedding t_embed;
  Tensor y_embed;  // [K, D], or [K + 1, D] with a row for "no label"
  std::optional<SpatialPrior> prior;
  std::vector<Block> blocks;
  FinalLayer final;
  Grid grid;
  int64_t image_size = 0, in_channels = 0, num_classes = 0, steps = 0;
  Betas betas = Betas::linear;
  double label_dropout = 0;
};

// dit-s-2, dit-s-2-decay and dit-b-2 for an autoencoder's latents (4 channels); dit-xt and dit-xt-decay for
// pixels; an empty Json for another name.
Json dit_preset(const std::string& name, int64_t image_size, int64_t num_classes);

}  // namespace tessera
