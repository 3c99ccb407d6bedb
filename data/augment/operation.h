#pragma once

#include <optional>
#include <vector>

#include "data/augment/affine.h"
#include "engine/core/per_thread.h"
#include "engine/core/random.h"

namespace tessera {

/// The operations of AutoAugment (Cubuk et al., 2019) and RandAugment (2020).
enum class Operation {
  shear_x,       ///< source x = x + magnitude y, so the top left corner stays
  shear_y,       ///< source y = y + magnitude x
  translate_x,   ///< magnitude: fraction of the width; positive moves left
  translate_y,   ///< magnitude: fraction of the height; positive moves up
  rotate,        ///< magnitude: degrees, counter-clockwise
  color,         ///< the magnitude of these four is the factor of colour.h
  contrast,      ///<
  brightness,    ///<
  sharpness,     ///<
  posterize,     ///< magnitude: bits kept
  solarize,      ///< magnitude: threshold
  solarize_add,  ///< magnitude: added to values below 128
  auto_contrast,
  equalize,
  invert  ///< the last three ignore the magnitude
};

/// Whether the operation moves pixels; the others change colours.
constexpr bool moves(Operation operation) { return operation <= Operation::rotate; }

/// What an operation is applied to: an image or its mask (Split::mask). A mask takes part in all moves, but
/// it holds classes, which have no colours and cannot be interpolated.
enum class Layer { picture, mask };

/// The interpolation filter and the colour of uncovered pixels.
struct Drawing {
  Filter shear = Filter::bicubic, others = Filter::nearest;
  Colour fill = mid_grey;
};

/// One change of an image of known size, with all its parameters worked out. It can be drawn before the image
/// is decoded, and it is what a GPU receives.
struct Change {
  enum class Kind : uint8_t {
    flip,    ///< mirror left-right
    shift,   ///< up by `down`, left by `right`; uncovered pixels become black
    turn,    ///< by `quarters` quarter turns
    move,    ///< by `map`
    colour,  ///< by `operation`
  };
  Kind kind = Kind::colour;
  Operation operation = Operation::invert;
  int down = 0, right = 0, quarters = 0;
  double magnitude = 0;  ///< of `operation`
  Affine map{};          ///< the map of every kind that moves pixels
  Filter filter = Filter::nearest;
  Colour fill{};
};

/// The change that the operation makes to an image of this size; none if it leaves every image as it is.
std::optional<Change> change_of(Operation operation, double magnitude, int height, int width,
                                const Drawing& drawing = {});

/// Applies the change in place. A mask is moved in the same way but by the nearest pixel, uncovered pixels
/// get no class, and colour changes leave it alone.
void apply(const Change& change, Image& image, Layer layer);

/// Applies the operation in place. The result equals that of the published policies under Pillow 8.0 to 9.4.
void apply(Operation operation, double magnitude, Image& image, Layer layer = Layer::picture,
           const Drawing& drawing = {});

/// Applies the changes that op.draw(random, height, width, changes) draws to an image or a mask.
template <class Op> void draw_and_apply(const Op& op, Image& image, Random& random, Layer layer) {
  static const PerThread<std::vector<Change>> of_all;
  std::vector<Change>& changes = of_all.of_this_thread();
  changes.clear();
  op.draw(random, image.height, image.width, changes);
  for (const Change& change : changes) apply(change, image, layer);
}

}  // namespace tessera
