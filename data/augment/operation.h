#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "data/augment/affine.h"
#include "engine/core/random.h"

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

// One change of a picture of known size, all its numbers worked out: what is drawn before there are pixels,
// and what a GPU is told.
struct Change {
  enum class Kind : uint8_t {
    flip,    // left becomes right
    shift,   // up by `down`, left by `right`; what comes in is black
    turn,    // by `quarters`
    move,    // by `map`
    colour,  // by `operation`
  };
  Kind kind = Kind::colour;
  Operation operation = Operation::invert;
  int down = 0, right = 0, quarters = 0;
  double magnitude = 0;  // of `operation`
  Affine map{};          // where pixels come from, whatever moves them
  Filter filter = Filter::nearest;
  Colour fill{};
};

// The operation on a picture of this size; nothing where it leaves every picture as it is.
std::optional<Change> change_of(Operation operation, double magnitude, int height, int width,
                                const Drawing& drawing = {});

// The change, in place. A mask is moved alike, by the nearest pixel; what comes in is of no class; its
// colours are left alone.
void apply(const Change& change, Image& image, Layer layer);

// The operation, in place, as the policies' own code has it under Pillow 8.0 to 9.4.
void apply(Operation operation, double magnitude, Image& image, Layer layer = Layer::picture,
           const Drawing& drawing = {});

// What op.draw(random, height, width, changes) draws, done to the picture or the mask.
template <class Op> void draw_and_apply(const Op& op, Image& image, Random& random, Layer layer) {
  thread_local std::vector<Change> changes;
  changes.clear();
  op.draw(random, image.height, image.width, changes);
  for (const Change& change : changes) apply(change, image, layer);
}

}  // namespace tessera
