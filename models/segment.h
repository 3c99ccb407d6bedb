#pragma once

#include <optional>
#include <vector>

#include "models/lvvit.h"
#include "models/segment_inference.h"

namespace tessera {

/// Semantic segmentation by UperNet (Xiao et al., 2018) on the blocks of an LV-ViT or SP-ViT, arch "segment".
///
/// The maps of an LV-ViT all have the size of its grid, h x w. Four of them become a pyramid, as in the Token
/// Labeling authors' code:
///
///   level 0   4h x 4w   transposed conv of stride 4, unit 1x1       unit: conv, BN, relu
///   level 1   2h x 2w   transposed conv of stride 2, unit 1x1
///   level 2    h x  w   unit 1x1
///   level 3    h x  w   unit 1x1, to top_channels
///
/// The decoder pools level 3 at several scales, adds each level, resized, to the level below it, and joins
/// all four at the size of level 0; its logits are resized to the image. In training an auxiliary head reads
/// one of levels 0 to 2.
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

  /// relu(BN(conv(x))), of the same size: [B, h, w, in] -> [B, h, w, out]
  struct Unit {
    Unit() = default;
    Unit(const Scope& scope, int64_t in, int64_t out, int64_t kernel);
    Tensor operator()(const Tensor& x, const Pass& pass) const;

    Conv2d conv;
    BatchNorm bn;
    std::string path;
  };

  /// relu(BN(transposed conv(x))) with kernel and stride f = factor. [B, h, w, D] -> [B, h f, w f, D]. The
  /// windows do not overlap, so a linear map of each pixel gives its f x f outputs. conv.weight [in, out, f,
  /// f].
  struct UpUnit {
    UpUnit() = default;
    UpUnit(const Scope& scope, int64_t dim, int64_t factor);
    Tensor operator()(const Tensor& x, const Pass& pass) const;

    Tensor weight;
    BatchNorm bn;
    std::string path, conv_path;
  };

  struct Pyramid {
    Pyramid() = default;
    Pyramid(const Scope& scope, int64_t dim, int64_t top);
    std::vector<Tensor> operator()(const std::vector<Tensor>& maps,
                                   const Pass& pass) const;  ///< four maps -> four levels

    UpUnit up0, up1;
    Unit out0, out1, out2, out3;
  };

  /// Dropout of whole channels, then a 1x1 convolution to the classes.
  struct Classifier {
    Classifier() = default;
    Classifier(const Scope& scope, int64_t channels, int64_t classes, double drop_rate);
    Tensor operator()(const Tensor& x, Pass& pass) const;  ///< [B, h, w, c] -> [B, h, w, K]

    Conv2d classify;
    double drop_rate = 0;
  };

  struct UperNet {
    Tensor operator()(const std::vector<Tensor>& levels, Pass& pass) const;  ///< -> [B, 4h, 4w, K]

    std::vector<int64_t> scales;
    std::vector<Unit> pool;  ///< one per scale
    Unit top;
    std::vector<Unit> lateral, smooth;  ///< of levels 0 to 2
    Unit fuse;
    Classifier classifier;
    std::string path;
  };

  struct AuxHead {
    Unit unit;
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

  std::optional<LvVit> backbone;
  std::vector<int64_t> out_blocks;
  Pyramid pyramid;
  UperNet decoder;
  std::optional<AuxHead> aux;
};

Architecture segment_architecture();

}  // namespace tessera
