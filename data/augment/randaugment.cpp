#include "data/augment/randaugment.h"

#include <algorithm>

namespace tessera {

namespace {

constexpr int drawn_from = static_cast<int>(Operation::invert) + 1;  // all operations
constexpr double top = 10;

}  // namespace

double randaugment_magnitude(Operation operation, double magnitude, int sign) {
  const double part = magnitude / top;
  switch (operation) {
    case Operation::shear_x:
    case Operation::shear_y:
      return sign * part * 0.3;
    case Operation::translate_x:
    case Operation::translate_y:
      return sign * part * 0.45;
    case Operation::rotate:
      return sign * part * 30;
    case Operation::color:
    case Operation::contrast:
    case Operation::brightness:
    case Operation::sharpness:
      return std::max(0.1, 1 + sign * part * 0.9);
    case Operation::posterize:
      return 4 - static_cast<int>(part * 4);
    case Operation::solarize:
      return 256 - std::min(256, static_cast<int>(part * 256));
    case Operation::solarize_add:
      return std::min(128, static_cast<int>(part * 110));
    default:
      return 0;
  }
}

void RandAugment::draw(Random& random, int height, int width, std::vector<Change>& to) const {
  for (int i = 0; i < options_.operations; ++i) {
    const auto operation = static_cast<Operation>(random.below(drawn_from));
    if (!random.chance(options_.probability)) continue;
    const double magnitude = std::clamp(options_.magnitude + options_.deviation * random.normal(), 0.0, top);
    const int sign = random.chance(0.5) ? -1 : 1;
    const Filter filter = random.chance(0.5) ? Filter::bicubic : Filter::bilinear;
    if (const auto change = change_of(operation, randaugment_magnitude(operation, magnitude, sign), height,
                                      width, {.shear = filter, .others = filter, .fill = fill_}))
      to.push_back(*change);
  }
}

}  // namespace tessera
