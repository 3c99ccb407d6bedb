#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/core/tensor.h"
#include "engine/io/json.h"
#include "engine/ops/patches.h"

namespace tessera {

// How a model's tokenizer looks at a picture.
struct TokenView {
  int64_t step = 0;   // pixels from one token to the next; the patch's side where patches lie side by side
  int64_t patch = 0;  // pixels of a patch's side; 0: convolutions or a soft split make the tokens
  std::optional<Directions> directions;  // of SPT's shifted copies, where it has them
  int64_t shift = 0;                     // of these, in pixels
};

// The view of a model's whole config; a segmenter's is its backbone's. Fails, with the reason, for a model
// that has no tokenizer; `name` is the model's in the message.
TokenView token_view(const Json& model, const std::string& name);

// "patches of 4 x 4 pixels; 4 copies shifted by 2 pixels, the mean colour where nothing comes in".
std::string describe(const TokenView& view);

// The names of what a token is made of, in the order of the tokenizer's channels: "picture", then for each
// copy the way in which it was moved: "left", "up left".
std::vector<std::string> panel_names(const TokenView& view);

// A row for each of the normalised pictures [B, 3, S, S]: the picture and its shifted copies side by side,
// each under its name, the lines between the tokens drawn over them. What lies outside of the picture is 0
// after normalisation, which is the data set's mean colour.
Image token_sheet(const std::string& title, const TokenView& view, const Tensor& pictures,
                  const std::vector<std::string>& captions, const Normalisation& normalisation);

}  // namespace tessera
