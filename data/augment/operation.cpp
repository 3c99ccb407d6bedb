#include "data/augment/operation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "data/augment/colour.h"
#include "data/augment/crop.h"
#include "data/augment/flip.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

// The number of quarter turns if the rotation moves whole pixels, else 0.
int quarters_of(double degrees, int height, int width) {
  if (degrees == 180) return 2;
  return height == width && (degrees == 90 || degrees == 270) ? static_cast<int>(degrees / 90) : 0;
}

std::optional<Change> rotated(double degrees, int height, int width, Change change) {
  degrees = std::fmod(degrees, 360.0);
  if (degrees < 0) degrees += 360.0;
  if (degrees == 0) return std::nullopt;
  change.quarters = quarters_of(degrees, height, width);
  if (change.quarters > 0) change.kind = Change::Kind::turn;
  change.map = rotation(degrees, height, width);
  return change;
}

void colour(Operation operation, double m, Image& image) {
  switch (operation) {
    case Operation::color:
      return enhance_colour(image, m);
    case Operation::contrast:
      return enhance_contrast(image, m);
    case Operation::brightness:
      return enhance_brightness(image, m);
    case Operation::sharpness:
      return enhance_sharpness(image, m);
    case Operation::posterize:
      return posterize(image, static_cast<int>(m));
    case Operation::solarize:
      return solarize(image, m);
    case Operation::solarize_add:
      return solarize_add(image, static_cast<int>(m), 128);
    case Operation::auto_contrast:
      return auto_contrast(image);
    case Operation::equalize:
      return equalize(image);
    default:
      return invert(image);
  }
}

}  // namespace

std::optional<Change> change_of(Operation operation, double magnitude, int height, int width,
                                const Drawing& drawing) {
  Change change{.operation = operation, .magnitude = magnitude};
  if (!moves(operation)) return change;
  const bool shears = operation == Operation::shear_x || operation == Operation::shear_y;
  change.kind = Change::Kind::move;
  change.filter = shears ? drawing.shear : drawing.others;
  change.fill = drawing.fill;
  switch (operation) {
    case Operation::shear_x:
      change.map = {.b = magnitude};
      break;
    case Operation::shear_y:
      change.map = {.d = magnitude};
      break;
    case Operation::translate_x:
      change.map = {.c = magnitude * width};
      break;
    case Operation::translate_y:
      change.map = {.f = magnitude * height};
      break;
    default:
      return rotated(magnitude, height, width, change);
  }
  return change;
}

void apply(const Change& change, Image& image, Layer layer) {
  const bool mask = layer == Layer::mask;
  switch (change.kind) {
    case Change::Kind::flip:
      return flip_horizontally(image);
    case Change::Kind::shift:
      return shift_image(image, change.down, change.right);
    case Change::Kind::turn:
      return turn(image, change.quarters);
    case Change::Kind::move:
      return transform(image, change.map, mask ? Filter::nearest : change.filter,
                       mask ? Colour{0, 0, 0} : change.fill);
    case Change::Kind::colour:
      if (!mask) colour(change.operation, change.magnitude, image);
  }
}

void apply(Operation operation, double magnitude, Image& image, Layer layer, const Drawing& drawing) {
  if (const auto change = change_of(operation, magnitude, image.height, image.width, drawing))
    apply(*change, image, layer);
}

}  // namespace tessera
