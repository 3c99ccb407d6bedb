#pragma once

// One image through a model, forward and backward, with everything recorded.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/inspector/rounding.h"
#include "data/dataset.h"
#include "data/formats/image.h"
#include "engine/autograd/pass_record.h"
#include "models/model.h"

namespace tessera {

// A model and the tensors that go in: "input" [B, C, H, W] and the targets.
struct PassInputs {
  Model model;
  TensorMap inputs = {};
  bool training = false;                      // batch norms take the statistics of the inputs
  bool trains = false;                        // the loss is Model::training_loss's, else Model::evaluate's
  std::string asks = {};                      // what the loss is, in words
  std::vector<std::string> class_names = {};  // may be empty
  std::optional<Image> picture = {};          // what "input" shows, before normalisation
  Normalisation normalisation = {};           // of the picture
};

struct InspectedPass {
  PassRecord record;
  double loss;
  Tensor logits;             // as the model gives them; undefined for a model without
  Roundings roundings = {};  // of an f32 model's record; empty for others
};

// Runs the model forward and backward on its inputs and records all of it. Attention and linear layers with
// an activation run as their plain twins, so that scores, probabilities and the values before an activation
// exist. Dropout and drop path do nothing. The record has the names "input", "target", "logits", "loss" and
// those of the parameters.
//
// The pass of an f32 model is computed in double, and each value and gradient is rounded to f32 once, before
// another op reads it: each is the nearest float of what its formula makes of the floats shown. The model's
// parameters have these gradients then.
InspectedPass inspect_pass(const PassInputs& pass);

// The loss of the same pass, without backward and without rounding. The same ops are recorded in the same
// order.
double loss_of_pass(const PassInputs& pass);

// What a fixture describes: its config, parameters and inputs. Fails for a fixture of a part.
PassInputs inputs_of_fixture(const std::filesystem::path& path, DType dtype);

}  // namespace tessera
