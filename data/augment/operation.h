#pragma once

#include <string_view>

#include "data/augment/affine.h"

namespace tessera {

// The operations of AutoAugment (Cubuk et al., 2019) and RandAugment (2020).
enum class Operation {
  shear_x,       // x of the source = x + magnitude y: about the top left corner
  shear_y,       // y of the source = y + magnitude x
  translate_x,   // by this part of the width; to the left if positive
  translate_y,   // of the height; up if positive
  rotate,        // degrees, counter-clockwise
  color,         // the enhancements' magnitude is their factor
  contrast,      //
  brightness,    //
  sharpness,     //
  posterize,     // bits that are kept
  solarize,      // threshold
  solarize_add,  // what is added to values below 128
  auto_contrast,
  equalize,
  invert  // magnitude: none
};

// "shear_x" and so on. Fails for a name that is none.
Operation operation_named(std::string_view name);

// Whether it moves pixels, rather than change their colours.
constexpr bool moves(Operation operation) { return operation <= Operation::rotate; }

// A picture, or its mask (see Split::mask): what happens to the one happens to the other, but a mask holds
// classes, which have no colour and nothing in between.
enum class Layer { picture, mask };

// How an operation fills what it uncovers, and how it reads between pixels.
struct Drawing {
  Filter shear = Filter::bicubic, others = Filter::nearest;
  Colour fill = mid_grey;
};

// The operation, in place, as the policies' own code has it under Pillow 8.0 to 9.4. A mask is moved alike,
// by the nearest pixel; what comes in is of no class; its colours are left alone.
void apply(Operation operation, double magnitude, Image& image, Layer layer = Layer::picture,
           const Drawing& drawing = {});

}  // namespace tessera
