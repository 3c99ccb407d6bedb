#pragma once

#include <optional>
#include <vector>

#include "models/architectures.h"
#include "models/diffusion.h"
#include "models/parts/attention.h"
#include "models/parts/mlp.h"
#include "models/parts/tokenizer.h"

namespace tessera {

/// DiT (Peebles and Xie, 2023): a transformer that predicts the noise in an image, given the time and the
/// class.
///
///   h = T(x) + positions;  c = t_embed(t) + y_embed[y]
///   shift1, scale1, gate1, shift2, scale2, gate2 = adaln(silu(c))
///   h = h + gate1 * Attention((1 + scale1) * LN(h) + shift1)
///   h = h + gate2 * MLP((1 + scale2) * LN(h) + shift2)                  depth times
///   shift, scale = final.adaln(silu(c))
///   out = unpatchify(final.proj((1 + scale) * LN(h) + shift))
///
/// LN has no parameters. Every adaln starts at zero, so each block starts as the identity. A content decay's
/// gates read the same tokens as q, k and v, and so depend on the time and the class too.
struct DiT {
  DiT(const Json& config, const Scope& scope);

  /// x [B, C, H, W], times and labels [B] i64 -> the predicted noise [B, C, H, W]; with learn_sigma
  /// [B, 2 C, H, W], the noise and then v (see log_variance in models/diffusion.h).
  Tensor operator()(const Tensor& x, const Tensor& times, const Tensor& labels) const;
  /// The answer at time 0 for class 0, by which cost and speed are measured.
  Tensor operator()(const Tensor& images, Pass& pass) const;
  /// The rows of y_embed: labels [B] -> [B, D]
  Tensor embedded(const Tensor& labels) const;

  /// The outputs of a fixture from its input, noise, t and y: logits and loss of the input as x_t; then a
  /// training step and both samplers with the input as the clean image x_0.
  TensorMap evaluate(const TensorMap& inputs, Pass& pass) const;
  /// Draws the times "t" of a training step and the labels "y" given to the network, of which label_dropout
  /// replaces some by "no label". Both are [B] i64 on the CPU. Fails for labels that are no class.
  TensorMap draw(const TensorMap& inputs, Pass& pass) const;
  /// The loss of clean images "input" [B, C, H, W] of classes "target" [B] i64, and the network's answer. The
  /// times "t" and labels "y", and the "noise" [B, C, H, W], are drawn from the pass if they are not among
  /// the inputs. Fails for mixed or smoothed targets.
  TrainingLoss training_loss(const TensorMap& inputs, const LossOptions& options, Pass& pass) const;
  /// Draws images of the classes `labels` [B] from noise of the pass, without recording a tape.
  Tensor sample(const Tensor& labels, const SampleOptions& options, Pass& pass) const;
  /// This network as a sampler calls it. It holds a pointer to this object.
  Denoiser denoiser() const;

  /// fc2(silu(fc1([cos(t w), sin(t w)]))),  w_k = 10000^(-k / half) for k < half, `time_dim` = 2 half
  struct TimeEmbedding {
    TimeEmbedding() = default;
    TimeEmbedding(const Scope& scope, int64_t steps, int64_t time_dim, int64_t dim);
    Tensor operator()(const Tensor& times) const;  ///< [B] -> [B, D]

    Linear fc1, fc2;
    Tensor waves;  ///< [T, time_dim], constants, a row a time
    std::string path;
  };

  struct Block {
    Block(const Scope& scope, int64_t dim, const AttentionOptions& attention, Grid grid, int64_t hidden);
    /// x [B, N, D]; condition [B, D], silu(c); omega [1, N, N], the model's own prior, or undefined -> [B, N,
    /// D]
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
                      const Tensor& condition) const;  ///< [B, N, D], [B, D] -> [B, N, P P out]

    Linear adaln, proj;
    std::string path;
  };

  Tokenizer patch_embed;
  Tensor positions;  ///< [1, N, D], constants
  TimeEmbedding t_embed;
  Tensor y_embed;  ///< [K, D], or [K + 1, D] with a row for "no label"
  std::string y_embed_path;
  std::optional<SpatialPrior> prior;
  std::vector<Block> blocks;
  FinalLayer final;
  Grid grid;
  int64_t image_size = 0, in_channels = 0, num_classes = 0, steps = 0;
  Betas betas = Betas::linear;
  double label_dropout = 0;
};

/// The time embedding [cos(t u), sin(t u)], u_k = 10000^(-2k / time_dim), of every time t before `steps`.
/// [steps, time_dim]
Tensor dit_time_waves(int64_t steps, int64_t time_dim, DType dtype);

Architecture dit_architecture();

}  // namespace tessera
