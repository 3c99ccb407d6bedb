#pragma once

#include <vector>

#include "apps/inspector/rounding.h"
#include "engine/autograd/pass_record.h"

namespace tessera {

// Says which values and gradients of a rounded pass the page's script computes itself (page/predict.js), so
// that the file need not hold them.
class Recomputed {
 public:
  // Both must outlive it. `roundings` is empty for a pass that was not rounded: nothing is recomputed then.
  Recomputed(const PassRecord& record, const Roundings& roundings);

  // By the place in PassRecord::values(); null where the tensor is stored.
  const Rounding* value(size_t i) const;
  const Rounding* gradient(size_t i) const;

 private:
  bool covers(const PassRecord::Step& step) const;

  const PassRecord& record_;
  const Roundings& roundings_;
  std::vector<bool> made_, passed_back_;  // by value: its step, all its readers are covered
};

}  // namespace tessera
