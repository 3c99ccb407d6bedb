#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What a layer, or a head of an attention layer, did in one training step. NaN where there is no such
/// number. RMS is the root of the mean of the squares.
struct LayerFigures {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();

  std::string layer;                  ///< "blocks.3", "patch_embed"; of a head its module, "blocks.3.attn"
  int64_t head = -1;                  ///< from 0; -1: of the whole layer
  double activation_rms = none;       ///< of what the layer gives to the next one, over the batch
  double gradient_rms = none;         ///< of the gradient of that, of the mean loss of the batch
  double weight_rms = none;           ///< of the layer's parameters before the step
  double weight_gradient_rms = none;  ///< of their gradient, before it is clipped
  double update_ratio = none;         ///< RMS of their change by the step : RMS of themselves
  double temperature = none;          ///< 1 / scale, where LSA learns the scale of a head's scores
  double gate = none;                 ///< mean of a content-aware gate over images and tokens, 0 to 1
};

/// A column of watch.csv and of charts.
struct LayerColumn {
  const char* name;  ///< "activation_rms"
  double LayerFigures::*value;
};

/// All numbers of LayerFigures, in their order.
const std::vector<LayerColumn>& layer_columns();

/// The layer that a module or parameter belongs to: its block ("blocks.3", "layers.0.blocks.1"), the numbered
/// part of a network without blocks ("layers.0.3"), or the first part of its path ("patch_embed", "head").
/// The page of `tessera inspect` has the same layers (draw.rungOf in apps/inspector/page/ladder.js).
std::string layer_of(std::string_view path);

}  // namespace tessera
