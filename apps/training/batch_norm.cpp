#include "apps/training/batch_norm.h"

#include <algorithm>

namespace tessera {

bool has_batch_norm(const Model& model) {
  return std::any_of(model.parameters.begin(), model.parameters.end(),
                     [](const Parameter& p) { return p.statistic; });
}

}  // namespace tessera
