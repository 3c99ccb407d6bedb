#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/parts/block.h"
#include "models/parts/tokenizer.h"

namespace tessera {

// The keys that ViT, PiT, Swin, CaiT and T2T have in common: arch, image_size, in_channels, num_classes,
// mlp_ratio, norm_eps.
struct Frame {
  int64_t image_size = 0, in_channels = 3, num_classes = 0;
  double mlp_ratio = 2, eps = 1e-5;

  int64_t hidden(int64_t dim) const;  // the hidden width of an MLP on tokens of width dim
};
// Where 0 classes are allowed, the model is a backbone without a head.
Frame read_frame(Fields& fields, const char* arch, Range classes = Range::at_least(1));

// The keys of a model in stages (PiT, Swin), each with half the height and width of the stage before it and
// twice its token width: Frame's, `dim` (the first stage's), `depth` (a list), drop_path, tokenizer,
// attention.
struct StagedFrame : Frame {
  std::vector<int64_t> dims, depth;
  std::vector<double> rates;  // drop path's, one a block
  Tokenizer::Options tokenizer;
  std::vector<AttentionOptions> attention;
};
StagedFrame read_staged_frame(Fields& fields, const char* arch, const char* default_rule,
                              Range classes = Range::at_least(1));

// The modifiers in a preset's name: "sl-pit-spool" has SPT (s), LSA (l) and S_pool.
struct Modifiers {
  bool shifted = false, locality = false, shifted_pool = false;
};
Modifiers modifiers_of(const std::string& name);

// The keys with which every such preset begins: arch, image_size, in_channels, num_classes.
Json preset_frame(const char* arch, int64_t image_size, int64_t num_classes);
// {"kind": "shifted", "directions": "diagonal", "ratio": 0.5}: SPT with the paper's options.
Json shifted_options();

}  // namespace tessera
