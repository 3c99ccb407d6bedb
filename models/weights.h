#pragma once

#include <filesystem>
#include <string>

#include "engine/core/named_tensors.h"
#include "models/model.h"

namespace tessera {

struct WeightOptions {
  bool resize_positions = false;  ///< resizes position embeddings of another grid to the model's
  bool fresh_head = false;        ///< keeps the model's own classifier weights instead of the file's
};

/// Renames and reshapes the tensors of a file that Tessera or timm saved to the names and shapes of `model`.
/// Parameters::load then lists whatever does not fit. timm's buffers that no model here has (batch counts,
/// Swin's indices and masks) are left out. timm's models differ in these points:
///   Swin  head.fc becomes head; older files number downsample by the stage before it
///   PiT   patch_embed.conv becomes patch_embed.proj; pos_embed [1, D, h, w] has no row for the class token
///   and
///         gets zeros; the pooling has no 1 x 1 convolution and gets the identity
///   CaiT  is refused: its head mixing has biases and its class token attends to itself, another network
/// A segmenter takes the weights of a classifier like its backbone too: all but the final norm and the heads;
/// its pyramid and decoder stay as they are. Positions are resized by resize_pos_embed
/// (models/parts/positions.h), from a square grid to a square one. `file` and `model` stay unchanged; `where`
/// names the source in messages.
NamedTensors adapt_weights(const NamedTensors& file, const Model& model, const WeightOptions& options,
                           const std::string& where);

/// Loads the .safetensors file `path` into `model`, adapted as above. Fails if the file cannot be read, and
/// with a list of everything that does not fit; the model then keeps its weights. The result is a remark for
/// the user, where the file holds another kind of model; otherwise it is empty.
std::string load_weights(const Model& model, const std::filesystem::path& path,
                         const WeightOptions& options = {});

}  // namespace tessera
