#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/lvvit.h"
#include "models/rmt.h"
#include "models/swin.h"

namespace tessera {

/// A convolution without bias, its batch norm and relu, of the same size: [B, h, w, in] -> [B, h, w, out]
struct ConvUnit {
  ConvUnit() = default;
  ConvUnit(const Scope& scope, int64_t in, int64_t out, int64_t kernel);
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

/// Four maps of one size, h x w, as four levels, as in the Token Labeling authors' code:
///
///   level 0   4h x 4w   transposed conv of stride 4, unit 1x1
///   level 1   2h x 2w   transposed conv of stride 2, unit 1x1
///   level 2    h x  w   unit 1x1
///   level 3    h x  w   unit 1x1, to `top` channels
struct MapPyramid {
  MapPyramid(const Scope& scope, int64_t dim, int64_t top);
  std::vector<Tensor> operator()(const std::vector<Tensor>& maps, const Pass& pass) const;

  UpUnit up0, up1;
  ConvUnit out0, out1, out2, out3;
};

/// A segmenter's backbone and the levels that its decoder reads, the largest map first:
///
///   lvvit           the four blocks `out_blocks`, counted from 0, through a MapPyramid to `top_channels`
///   rmt, sdt, swin  the map of every stage through a layer norm of its own, as Swin's authors segment
struct SegmentLevels {
  /// `backbone` is a config with num_classes 0. Takes its own keys from the decoder's. Fails for another
  /// architecture, for blocks that the backbone does not have and for a single stage.
  SegmentLevels(const Json& backbone, Fields& decoder, const Scope& scope);
  std::vector<Tensor> operator()(const Tensor& image, Pass& pass) const;  ///< of [B, h, w, C], one a level

  int64_t count() const { return static_cast<int64_t>(channels.size()); }

  std::vector<int64_t> channels;  ///< of each level
  std::unique_ptr<const LvVit> columnar;
  std::unique_ptr<const RMT> decaying;
  std::unique_ptr<const Swin> windowed;

 private:
  void pyramid_of_blocks(Fields& decoder, const Scope& scope);

  std::vector<int64_t> out_blocks_;
  std::optional<MapPyramid> pyramid_;
  std::vector<LayerNorm> norms_;
};

}  // namespace tessera
