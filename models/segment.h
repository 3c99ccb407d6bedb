#pragma once

#include <optional>
#include <vector>

#include "models/segment_inference.h"
#include "models/segment_levels.h"

namespace tessera {

/// Semantic segmentation by UperNet (Xiao et al., 2018), arch "segment", on the blocks of an LV-ViT or SP-ViT
/// or on the stages of an RMT, SDT or Swin (models/segment_levels.h).
///
/// The decoder pools the last level at several scales, adds each level, resized, to the level below it, and
/// joins all at the size of level 0; its logits are resized to the image. In training an auxiliary head reads
/// one of the levels before the last.
///
/// training_loss takes "target" i64 [B, H, W], 255 for pixels of no class. The loss of a part of a batch is
/// the mean over its own pixels, weighted by its share of the images.
struct Segmenter {
  Segmenter(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  ///< [B, C, H, W] -> [B, K, H, W]
  /// Runs the auxiliary head too: published costs count it, though evaluation does not use it.
  void forward_all(const Tensor& image, Pass& pass) const { both(image, pass, true); }
  /// The outputs of a fixture: logits, aux_logits (with an auxiliary head) and the loss of "target".
  TensorMap evaluate(const TensorMap& inputs, Pass& pass) const;
  TrainingLoss training_loss(const TensorMap& inputs, const LossOptions& options, Pass& pass) const;

  /// Dropout of whole channels, then a 1x1 convolution to the classes.
  struct Classifier {
    Classifier() = default;
    Classifier(const Scope& scope, int64_t channels, int64_t classes, double drop_rate);
    Tensor operator()(const Tensor& x, Pass& pass) const;  ///< [B, h, w, c] -> [B, h, w, K]

    Conv2d classify;
    double drop_rate = 0;
  };

  struct UperNet {
    Tensor operator()(const std::vector<Tensor>& levels, Pass& pass) const;  ///< -> [B, h, w, K], of level 0

    std::vector<int64_t> scales;
    std::vector<ConvUnit> pool;  ///< one per scale
    ConvUnit top;
    std::vector<ConvUnit> lateral, smooth;  ///< of all levels but the last
    ConvUnit fuse;
    Classifier classifier;
    std::string path;
  };

  struct AuxHead {
    ConvUnit unit;
    Classifier classifier;
    size_t level;
    double weight;
    std::string path;
  };

  /// The logits of the decoder and of the auxiliary head, both [B, H, W, K], the layout of the loss. `aux` is
  /// undefined without an auxiliary head or without `has_aux`.
  struct Both {
    Tensor logits, aux;
  };
  Both both(const Tensor& image, Pass& pass, bool has_aux) const;
  Tensor loss(const Both& both, const Tensor& target, const LossOptions& options) const;

  std::optional<SegmentLevels> levels;
  UperNet decoder;
  std::optional<AuxHead> aux;
};

Architecture segment_architecture();

}  // namespace tessera
