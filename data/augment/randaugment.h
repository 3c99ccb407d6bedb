#pragma once

#include "data/augment/operation.h"
#include "engine/core/random.h"

namespace tessera {

struct RandAugmentOptions {
  int operations = 2;        ///< for each image
  double magnitude = 9;      ///< 0 to 10
  double deviation = 0.5;    ///< standard deviation of the magnitude, which is drawn for each operation
  double probability = 0.5;  ///< of each operation
};

/// The magnitude for apply() at RandAugment's magnitude 0 .. 10. `sign` is 1 or -1. The strength of every
/// operation grows with the magnitude ("inc1" in timm).
double randaugment_magnitude(Operation operation, double magnitude, int sign);

/// RandAugment (Cubuk et al., 2020) as DeiT, LV-ViT and RMT use it ("rand-m9-mstd0.5-inc1" in timm):
/// operations are drawn from fifteen with replacement; moves use the bilinear or the bicubic filter with
/// equal probability and fill with `fill`, the data set's mean colour.
class RandAugment {
 public:
  RandAugment(const RandAugmentOptions& options, const Colour& fill) : options_(options), fill_(fill) {}
  int most_changes() const { return options_.operations; }
  void draw(Random& random, int height, int width, std::vector<Change>& to) const;
  void operator()(Image& image, Random& random, Layer layer) const {
    draw_and_apply(*this, image, random, layer);
  }

 private:
  RandAugmentOptions options_;
  Colour fill_;
};

}  // namespace tessera
