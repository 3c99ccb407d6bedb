#pragma once

#include "data/augment/operation.h"
#include "engine/core/random.h"

namespace tessera {

struct RandAugmentOptions {
  int operations = 2;        // a picture
  double magnitude = 9;      // of 0 .. 10
  double deviation = 0.5;    // of the magnitude, which is drawn anew for each operation
  double probability = 0.5;  // of each operation
};

// What operation() is given at a magnitude of 0 .. 10, a sign of 1 or -1, all of them growing with it.
double randaugment_magnitude(Operation operation, double magnitude, int sign);

// RandAugment (Cubuk et al., 2020) in the form that DeiT, LV-ViT and RMT train with ("rand-m9-mstd0.5-inc1"):
// operations drawn from fifteen, with replacement; pictures are moved by a bilinear or a bicubic filter,
// either as likely, and filled with `fill`, the data set's mean colour.
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
