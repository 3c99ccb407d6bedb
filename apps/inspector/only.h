#pragma once

// A part of a pass: the modules that a reader asked for.

#include <string>
#include <vector>

#include "apps/inspector/pass.h"

namespace tessera {

struct PartOfPass {
  PassRecord record;
  Roundings roundings;                // of this record; unknown where a gradient's readers are not all here
  std::vector<size_t> places;         // of its values in the whole record
  std::vector<std::string> left_out;  // the outermost modules of which no step was kept, in their order
};

// The steps of the modules that a pattern names, with those inside them: "blocks.4" or, with * and ? as in
// matches(), "blocks.*.attn". Kept too are the values "input", "target", "logits" and "loss". Fails for a
// pattern that names no module, with the nearest one.
PartOfPass only(const InspectedPass& pass, const std::vector<std::string>& patterns);

}  // namespace tessera
