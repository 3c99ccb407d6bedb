#pragma once

// Terms of a model that can be switched off: the same weights without one of them.

#include <string>
#include <vector>

#include "models/model.h"

namespace tessera {

struct Term {
  std::string name;   // "mask", as --without takes it
  std::string title;  // "diagonal mask (LSA)"
};

// The terms that a model of this config has, in this order:
//
//   temperature  LSA's learned scales become 1 / sqrt(d)
//   mask         LSA's diagonal mask
//   prior        SP-SA's factors become 1
//   bias         Swin's biases by offset
//   decay        the decay added to the scores, of any kind
//   gates        a content decay becomes -alpha times the distance
//   rope         rotary positions of RMT and SDT
//   lepe         the convolution beside the attention of RMT and SDT
//   shift        SPT's copies are not shifted, so that all of them are the image itself
std::vector<Term> terms_of(const Json& config);

// A new model without the term, with copies of the model's weights; those that only the term has are left
// out. Fails for a term that the model does not have, and names those that it has.
Model without_term(const Model& model, const std::string& term);

}  // namespace tessera
