#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/parts/block.h"
#include "models/parts/tokenizer.h"

namespace tessera {

// The keys that the config of every classifier of this kind has: arch, image_size, in_channels, num_classes,
// mlp_ratio, norm_eps.
struct Frame {
  int64_t image_size = 0, in_channels = 3, num_classes = 0;
  double mlp_ratio = 2, eps = 1e-5;

  int64_t hidden(int64_t dim) const;  // the width inside an MLP
};
Frame read_frame(Fields& fields, const char* arch);

// Of a model in stages, each half as high and wide as the one before and of twice its width: `dim` the first
// stage's, `depth` a list; and drop_path, tokenizer, attention.
struct StagedFrame : Frame {
  std::vector<int64_t> dims, depth;
  std::vector<double> rates;  // of drop path, block after block
  Tokenizer::Options tokenizer;
  std::vector<AttentionOptions> attention;
};
StagedFrame read_staged_frame(Fields& fields, const char* arch, const char* default_rule);

// The ideas that a preset's name asks for: "sl-pit-spool" has SPT (s), LSA (l) and S_pool.
struct Modifiers {
  bool shifted = false, locality = false, shifted_pool = false;
};
// None unless `name` is `base`, after s-, l- or sl- or bare, and before -spool where `pools` and both are
// there.
std::optional<Modifiers> modifiers_of(const std::string& name, const std::string& base, bool pools = false);

// The beginning of a preset's config.
Json preset_frame(const char* arch, int64_t image_size, int64_t num_classes);
// {"kind": "shifted", "directions": "diagonal", "ratio": 0.5}: SPT as the paper has it.
Json shifted_options();

}  // namespace tessera
