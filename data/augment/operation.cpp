#include "data/augment/operation.h"

#include <algorithm>
#include <array>
#include <string>

#include "data/augment/colour.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

constexpr std::array names{"shear_x",  "shear_y",      "translate_x",   "translate_y", "rotate",
                           "color",    "contrast",     "brightness",    "sharpness",   "posterize",
                           "solarize", "solarize_add", "auto_contrast", "equalize",    "invert"};

void move(Operation operation, double m, Image& image, const Drawing& drawing) {
  switch (operation) {
    case Operation::shear_x:
      return transform(image, {.b = m}, drawing.shear, drawing.fill);
    case Operation::shear_y:
      return transform(image, {.d = m}, drawing.shear, drawing.fill);
    case Operation::translate_x:
      return transform(image, {.c = m * image.width}, drawing.others, drawing.fill);
    case Operation::translate_y:
      return transform(image, {.f = m * image.height}, drawing.others, drawing.fill);
    default:
      return rotate(image, m, drawing.others, drawing.fill);
  }
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

Operation operation_named(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    fail("augment: operation '", name, "' is not known",
         did_you_mean(std::string(name), std::vector<std::string>(names.begin(), names.end())));
  return static_cast<Operation>(found - names.begin());
}

void apply(Operation operation, double magnitude, Image& image, Layer layer, const Drawing& drawing) {
  if (!moves(operation)) {
    if (layer == Layer::picture) colour(operation, magnitude, image);
  } else if (layer == Layer::mask) {
    move(operation, magnitude, image, {Filter::nearest, Filter::nearest, {0, 0, 0}});
  } else {
    move(operation, magnitude, image, drawing);
  }
}

}  // namespace tessera
