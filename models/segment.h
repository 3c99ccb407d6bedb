#pragma once

#include <optional>
#include <vector>

#include "models/lvvit.h"
#include "models/segment_inference.h"

namespace tessera {

// Semantic segmentation by UperNet (Xiao et al., 2018) on the blocks of an LV-ViT or SP-ViT, arch "segment".
//
// A columnar transformer's maps all have the size of its grid, h x w. Four of them become a pyramid (Token
// Labeling's code):
//
//   level 0   4h x 4w   transposed conv of stride 4, unit 1x1       unit: conv, BN, relu
//   level 1   2h x 2w   transposed conv of stride 2, unit 1x1
//   level 2    h x  w   unit 1x1
//   level 3    h x  w   unit 1x1, to top_channels
//
// The decoder pools level 3 at several scales, adds what is above to what is below, and joins all four levels
// at the size of level 0; its logits are brought to the size of the image. In training an auxiliary head
// reads one of levels 0 to 2.
//
// training_loss: "target" i64 [B, H, W], 255 for pixels of no class. The pixels of a part of a batch count as
// its images do.
struct Segmenter {
  Segmenter(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  // [B, C, H, W] -> [B, K, H, W]
  // The auxiliary head too: SIZES.md counts it, though evaluation has no use for it.
  void forward_all(const Tensor& image, Pass& pass) const { both(image, pass, true); }
  // logits, aux_logits (with an auxiliary head) and the loss of "target".
  TensorMap evaluate(const TensorMap& inputs, Pass& pass) const;
  TrainingLoss training_loss(const TensorMap& inputs, const LossOptions& options, Pass& pass) const;

  // relu(BN(conv(x))), of the same size: [B, h, w, in] -> [B, h, w, out]
  struct Unit {
    Unit() = default;
    Unit(const Scope& scope, int64_t in, int64_t out, int64_t kernel);
    Tensor operator()(const Tensor& x, const Pass& pass) const;

    Conv2d conv;
    BatchNorm bn;
  };

  // relu(BN(transposed conv(x))), kernel and stride being `factor`: [B, h, w, D] -> [B, h f, w f, D]. Its
  // windows do not overlap, so each pixel is mapped to f x f by itself. conv.weight [in, out, f, f].
  struct UpUnit {
    UpUnit() = default;
    UpUnit(const Scope& scope, int64_t dim, int64_t factor);
    Tensor operator()(const Tensor& x, const Pass& pass) const;

    Tensor weight;
    BatchNorm bn;
    std::string path;
  };

  struct Pyramid {
    Pyramid() = default;
    Pyramid(const Scope& scope, int64_t dim, int64_t top);
    std::vector<Tensor> operator()(const std::vector<Tensor>& maps,
                                   const Pass& pass) const;  // four, from four

    UpUnit up0, up1;
    Unit out0, out1, out2, out3;
  };

  // Dropout of whole channels, then a 1x1 convolution to the classes.
  struct Classifier {
    Classifier() = default;
    Classifier(const Scope& scope, int64_t channels, int64_t classes, double drop_rate);
    Tensor operator()(const Tensor& x, Pass& pass) const;  // [B, h, w, c] -> [B, h, w, K]

    Conv2d classify;
    double drop_rate = 0;
  };

  struct UperNet {
    Tensor operator()(const std::vector<Tensor>& levels, Pass& pass) const;  // -> [B, 4h, 4w, K]

    std::vector<int64_t> scales;
    std::vector<Unit> pool;  // one a scale
    Unit top;
    std::vector<Unit> lateral, smooth;  // of levels 0 to 2
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

  // Of the decoder and the auxiliary head, [B, H, W, K] both, as the loss reads them; without a head or
  // `has_aux` the second is undefined.
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

// lvvit-s-seg, sp-vit-s-seg; an empty Json for another name.
Json segment_preset(const std::string& name, int64_t image_size, int64_t num_classes);

}  // namespace tessera
