#pragma once

#include "data/image.h"
#include "models/model.h"

namespace tessera {

// A forward pass, and where its class token looks in the last layer.
struct Looked {
  Tensor logits;     // [1, K]
  Tensor attention;  // softmax probabilities over the patches, mean over the heads. [h, w], h = w
};

// Runs one image [1, C, H, W] with attention as it is defined (attention_plain). Fails for a model without a
// class token over a square grid of patches.
Looked look(const Model& model, const Tensor& image);

// The picture beside itself under its attention [h, w]: bright and warm where it is high. Both enlarged to at
// least 224 pixels a side.
Image overlay(const Image& image, const Tensor& attention);

}  // namespace tessera
