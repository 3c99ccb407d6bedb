#pragma once

#include <map>
#include <string>

#include "models/model.h"

namespace tessera {

// The forward pass of a model in evaluation as an ONNX file (opset 17), for any number of images at once.
//
//   classifier, segmenter   images [batch, C, H, W] -> logits [batch, K], or [batch, K, H, W] in the size of
//   the
//                           images. A model of token labels answers as in evaluation: with the class token's
//                           logits and half the largest of the patches'
//   diffusion model         images [batch, C, H, W], t i64 [batch] (from 0), y i64 [batch] (the class, or
//   their
//                           number for none) -> noise [batch, C or 2 C, H, W], the variance behind it
//
// Fails for a model whose parameters are not f32.
std::string onnx_of(const Model& model, const std::string& name,
                    const std::map<std::string, std::string>& metadata);

}  // namespace tessera
