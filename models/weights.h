#pragma once

#include <filesystem>
#include <string>

#include "engine/core/named_tensors.h"
#include "models/model.h"

namespace tessera {

struct WeightOptions {
  bool resize_positions = false;  // carry position embeddings of another grid to the model's
  bool fresh_head = false;        // leave the layer that tells the classes apart as the model has it
};

// The tensors of `file`, as Tessera or timm saved them, under the names and in the shapes of `model`, for
// Parameters::load, which lists whatever does not fit. timm's buffers that are no numbers of a model (counts
// of batches, Swin's indices and masks) are left out, and where its models differ from those here:
//   Swin  head.fc is head; older files count downsample from the stage before
//   PiT   patch_embed.conv is patch_embed.proj; pos_embed [1, D, h, w] has no row for the class token, here
//   0;
//         the pooling has no 1 x 1 convolution, here the identity
//   CaiT  is refused: head mixing with biases and a class token that attends to itself are another network
// Positions are resized by resize_pos_embed (models/parts/positions.h), from a square grid to a square one.
// Nothing is changed in `file` or `model`; `where` names the source.
NamedTensors adapt_weights(const NamedTensors& file, const Model& model, const WeightOptions& options,
                           const std::string& where);

// Reads the .safetensors file `path` into `model`, adapted as above. Fails as the reading of the file does,
// and with a list of whatever does not fit; then the model is as before.
void load_weights(const Model& model, const std::filesystem::path& path, const WeightOptions& options = {});

}  // namespace tessera
