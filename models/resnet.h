#pragma once

#include <string>
#include <vector>

#include "engine/nn/batch_norm.h"
#include "engine/nn/conv2d.h"
#include "engine/nn/linear.h"
#include "models/architectures.h"

namespace tessera {

/// The residual network for small images (He et al., 2016, section 4.2): 6n + 2 layers, n blocks a stage.
///
///   x = relu(BN(conv(image)))
///   x = relu(shortcut(x) + BN(conv(relu(BN(conv(x))))))     three stages of width, 2 width, 4 width channels
///   logits = fc(mean over the pixels of x)
///
/// All convolutions are 3 x 3; the first of the second and third stage has stride 2.
struct ResNet {
  ResNet(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  ///< [B, C, H, W] -> [B, K]

  struct Block {
    Block(const Scope& scope, int64_t in, int64_t out, int64_t stride);
    Tensor operator()(const Tensor& x, const Pass& pass) const;  ///< [B, H, W, in] -> [B, H/s, W/s, out]
    /// The shortcut without parameters (the paper's option A): takes every stride-th pixel and pads the
    /// channels with zeros, half on either side.
    Tensor shortcut(const Tensor& x) const;

    Conv2d conv1, conv2;
    BatchNorm bn1, bn2;
    int64_t stride = 1, padding = 0;  ///< padding: zero channels on either side
    std::string path;
  };

  Conv2d conv1;
  BatchNorm bn1;
  std::vector<Block> blocks;
  Linear fc;
};

Architecture resnet_architecture();

}  // namespace tessera
