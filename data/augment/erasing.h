#pragma once

#include <array>
#include <optional>
#include <span>

#include "data/augment/box.h"
#include "data/augment/erasing_kernels.h"
#include "engine/core/random.h"
#include "engine/core/shape.h"

namespace tessera {

struct ErasingOptions {
  double probability = 0;
  double min_area = 0.02, max_area = 0.4;  // of the picture's, uniform
  double min_ratio = 0.3;                  // height to width: from this to its inverse
  bool log_ratio = false;                  // the ratio's logarithm is uniform, rather than itself
  // What is written: the data set's mean (as the authors have it: as it is, in the normalised picture), 0,
  // which is the mean's place there, or normal noise, each number anew.
  enum class Fill { mean, zero, noise } fill = Fill::mean;
};

// The box to erase from a picture: its sides are rounded, halves to even, and must be shorter than the
// picture's; nothing where a hundred draws give none.
std::optional<PixelBox> draw_erasing_box(const ErasingOptions& options, int64_t height, int64_t width,
                                         Random& random);

// Random erasing (Zhong et al., 2020) of a normalised picture. [3, H, W]
class RandomErasing {
 public:
  RandomErasing(const ErasingOptions& options, const std::array<float, 3>& mean);

  // What is erased of a picture of this size; an empty box, mostly, for nothing. It leaves `random` where the
  // noise begins.
  Erasure draw(int64_t height, int64_t width, Random& random) const;
  const ErasingFill& fill() const { return fill_; }
  void operator()(std::span<float> picture, const Shape& shape, Random& random) const;

 private:
  ErasingOptions options_;
  ErasingFill fill_;
};

}  // namespace tessera
