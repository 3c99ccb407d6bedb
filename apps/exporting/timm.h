#pragma once

#include <string>

#include "apps/exporting/source.h"
#include "engine/core/named_tensors.h"

namespace tessera {

// A model as timm (github.com/huggingface/pytorch-image-models) builds and names it.
struct TimmModel {
  std::string architecture;  // timm's entry: "vit_tiny_patch16_224"
  Json arguments;            // what that entry is called with
  NamedTensors weights;
  std::string classifier;  // the module of the classes
};

// ViT (DeiT too), PiT, Swin and EfficientNet-B0. The logits stay the same; these weights change:
//
//   norm_eps other than timm's  the residual stream x is scaled to a x, a = sqrt(timm's / norm_eps), by every
//                               layer that adds to it: LN(a x; a^2 eps) = LN(x; eps)
//   PiT    no position of the class token: added to the token; a bias of zeros for q, k and v without one;
//   the
//          pooling's 1 x 1 convolution goes into the depthwise one, which it can where it mixes no channels
//   Swin   head becomes head.fc
//
// Fails with the reason for a model that timm has no modules for.
TimmModel timm_model(const Model& model);

// Writes a folder that timm.create_model("local-dir:FOLDER", pretrained=True) reads: config.json with the
// names of the classes, mean, deviation and image size, and model.safetensors.
void export_timm(const ExportSource& source, const std::string& folder);

}  // namespace tessera
