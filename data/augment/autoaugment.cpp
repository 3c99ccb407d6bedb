// Compiled without contraction, so that magnitudes equal the doubles of numpy.linspace.
#include "data/augment/autoaugment.h"

#include <algorithm>

#include "engine/core/error.h"

namespace tessera {

namespace {

using enum Operation;

constexpr std::array<SubPolicy, 25> cifar10_policy{{
    {{{invert, 0.1, 7}, {contrast, 0.2, 6}}},           {{{rotate, 0.7, 2}, {translate_x, 0.3, 9}}},
    {{{sharpness, 0.8, 1}, {sharpness, 0.9, 3}}},       {{{shear_y, 0.5, 8}, {translate_y, 0.7, 9}}},
    {{{auto_contrast, 0.5, 8}, {equalize, 0.9, 2}}},    {{{shear_y, 0.2, 7}, {posterize, 0.3, 7}}},
    {{{color, 0.4, 3}, {brightness, 0.6, 7}}},          {{{sharpness, 0.3, 9}, {brightness, 0.7, 9}}},
    {{{equalize, 0.6, 5}, {equalize, 0.5, 1}}},         {{{contrast, 0.6, 7}, {sharpness, 0.6, 5}}},
    {{{color, 0.7, 7}, {translate_x, 0.5, 8}}},         {{{equalize, 0.3, 7}, {auto_contrast, 0.4, 8}}},
    {{{translate_y, 0.4, 3}, {sharpness, 0.2, 6}}},     {{{brightness, 0.9, 6}, {color, 0.2, 8}}},
    {{{solarize, 0.5, 2}, {invert, 0.0, 3}}},           {{{equalize, 0.2, 0}, {auto_contrast, 0.6, 0}}},
    {{{equalize, 0.2, 8}, {equalize, 0.6, 4}}},         {{{color, 0.9, 9}, {equalize, 0.6, 6}}},
    {{{auto_contrast, 0.8, 4}, {solarize, 0.2, 8}}},    {{{brightness, 0.1, 3}, {color, 0.7, 0}}},
    {{{solarize, 0.4, 5}, {auto_contrast, 0.9, 3}}},    {{{translate_y, 0.9, 9}, {translate_y, 0.7, 9}}},
    {{{auto_contrast, 0.9, 2}, {solarize, 0.8, 3}}},    {{{equalize, 0.8, 8}, {invert, 0.1, 3}}},
    {{{translate_y, 0.7, 9}, {auto_contrast, 0.9, 1}}},
}};

constexpr std::array<SubPolicy, 25> svhn_policy{{
    {{{shear_x, 0.9, 4}, {invert, 0.2, 3}}},       {{{shear_y, 0.9, 8}, {invert, 0.7, 5}}},
    {{{equalize, 0.6, 5}, {solarize, 0.6, 6}}},    {{{invert, 0.9, 3}, {equalize, 0.6, 3}}},
    {{{equalize, 0.6, 1}, {rotate, 0.9, 3}}},      {{{shear_x, 0.9, 4}, {auto_contrast, 0.8, 3}}},
    {{{shear_y, 0.9, 8}, {invert, 0.4, 5}}},       {{{shear_y, 0.9, 5}, {solarize, 0.2, 6}}},
    {{{invert, 0.9, 6}, {auto_contrast, 0.8, 1}}}, {{{equalize, 0.6, 3}, {rotate, 0.9, 3}}},
    {{{shear_x, 0.9, 4}, {solarize, 0.3, 3}}},     {{{shear_y, 0.8, 8}, {invert, 0.7, 4}}},
    {{{equalize, 0.9, 5}, {translate_y, 0.6, 6}}}, {{{invert, 0.9, 4}, {equalize, 0.6, 7}}},
    {{{contrast, 0.3, 3}, {rotate, 0.8, 4}}},      {{{invert, 0.8, 5}, {translate_y, 0.0, 2}}},
    {{{shear_y, 0.7, 6}, {solarize, 0.4, 8}}},     {{{invert, 0.6, 4}, {rotate, 0.8, 4}}},
    {{{shear_y, 0.3, 7}, {translate_x, 0.9, 3}}},  {{{shear_x, 0.1, 6}, {invert, 0.6, 5}}},
    {{{solarize, 0.7, 2}, {translate_y, 0.6, 7}}}, {{{shear_y, 0.8, 4}, {invert, 0.8, 8}}},
    {{{shear_x, 0.7, 9}, {translate_y, 0.8, 3}}},  {{{shear_y, 0.8, 5}, {auto_contrast, 0.7, 3}}},
    {{{shear_x, 0.7, 2}, {invert, 0.1, 5}}},
}};

constexpr std::array<SubPolicy, 25> imagenet_policy{{
    {{{posterize, 0.4, 8}, {rotate, 0.6, 9}}},  {{{solarize, 0.6, 5}, {auto_contrast, 0.6, 5}}},
    {{{equalize, 0.8, 8}, {equalize, 0.6, 3}}}, {{{posterize, 0.6, 7}, {posterize, 0.6, 6}}},
    {{{equalize, 0.4, 7}, {solarize, 0.2, 4}}}, {{{equalize, 0.4, 4}, {rotate, 0.8, 8}}},
    {{{solarize, 0.6, 3}, {equalize, 0.6, 7}}}, {{{posterize, 0.8, 5}, {equalize, 1.0, 2}}},
    {{{rotate, 0.2, 3}, {solarize, 0.6, 8}}},   {{{equalize, 0.6, 8}, {posterize, 0.4, 6}}},
    {{{rotate, 0.8, 8}, {color, 0.4, 0}}},      {{{rotate, 0.4, 9}, {equalize, 0.6, 2}}},
    {{{equalize, 0.0, 7}, {equalize, 0.8, 8}}}, {{{invert, 0.6, 4}, {equalize, 1.0, 8}}},
    {{{color, 0.6, 4}, {contrast, 1.0, 8}}},    {{{rotate, 0.8, 8}, {color, 1.0, 2}}},
    {{{color, 0.8, 8}, {solarize, 0.8, 7}}},    {{{sharpness, 0.4, 7}, {invert, 0.6, 8}}},
    {{{shear_x, 0.6, 5}, {equalize, 1.0, 9}}},  {{{color, 0.4, 0}, {equalize, 0.6, 3}}},
    {{{equalize, 0.4, 7}, {solarize, 0.2, 4}}}, {{{solarize, 0.6, 5}, {auto_contrast, 0.6, 5}}},
    {{{invert, 0.6, 4}, {equalize, 1.0, 8}}},   {{{color, 0.6, 4}, {contrast, 1.0, 8}}},
    {{{equalize, 0.8, 8}, {equalize, 0.6, 3}}},
}};

// Value i of ten evenly spaced ones from `first` to `last`.
double tenth(double first, double last, int i) { return i == 9 ? last : i * ((last - first) / 9) + first; }

constexpr std::array posterize_bits{8, 8, 7, 7, 6, 6, 5, 5, 4, 4};

}  // namespace

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{"cifar10", "svhn", "imagenet"};
  return names;
}

std::span<const SubPolicy> policy(const std::string& name) {
  if (name == "cifar10") return cifar10_policy;
  if (name == "svhn") return svhn_policy;
  if (name == "imagenet") return imagenet_policy;
  fail("augment: policy '", name, "' is none of cifar10, svhn, imagenet", did_you_mean(name, policy_names()));
}

bool have_sign(Operation operation) {
  return (moves(operation) && operation != Operation::rotate) ||
         (operation >= Operation::color && operation <= Operation::sharpness);
}

double policy_magnitude(Operation operation, int index, int sign) {
  check(index >= 0 && index <= 9, "augment: magnitude ", index, "; the policies have 0 to 9");
  using enum Operation;
  switch (operation) {
    case shear_x:
    case shear_y:
      return sign * tenth(0, 0.3, index);
    case translate_x:
    case translate_y:
      return sign * tenth(0, 150.0 / 331, index);
    case rotate:
      return tenth(0, 30, index);
    case color:
    case contrast:
    case brightness:
    case sharpness:
      return 1 + sign * tenth(0, 0.9, index);
    case posterize:
      return posterize_bits[static_cast<size_t>(index)];
    case solarize:
      return tenth(256, 0, index);
    default:
      return 0;
  }
}

void AutoAugment::draw(Random& random, int height, int width, std::vector<Change>& to) const {
  const auto chosen = static_cast<size_t>(random.below(std::ssize(policy_)));
  for (const PolicyStep& step : policy_[chosen]) {
    if (!random.chance(step.probability)) continue;
    const int sign = have_sign(step.operation) && random.chance(0.5) ? -1 : 1;
    const double magnitude = policy_magnitude(step.operation, step.index, sign);
    if (const auto change = change_of(step.operation, magnitude, height, width)) to.push_back(*change);
  }
}

}  // namespace tessera
