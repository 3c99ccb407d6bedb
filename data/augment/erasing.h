#pragma once

#include <array>
#include <optional>
#include <span>

#include "data/augment/erasure.h"
#include "data/formats/box.h"
#include "engine/core/random.h"
#include "engine/core/shape.h"

namespace tessera {

struct ErasingOptions {
  double probability = 0;
  double min_area = 0.02, max_area = 0.4;  ///< fraction of the image's area, uniform
  double min_ratio = 0.3;                  ///< height / width, from this to its inverse
  bool log_ratio = false;                  ///< true: the ratio's logarithm is uniform, not the ratio
  /// What is written to the normalised image: the data set's mean as it stands (as in the paper's code), 0,
  /// which is what the mean normalises to, or normal noise, drawn for each element.
  enum class Fill { mean, zero, noise } fill = Fill::mean;
};

/// Draws the box to erase. Its sides are rounded half to even and must be shorter than the image's; none if a
/// hundred draws do not fit.
std::optional<PixelBox> draw_erasing_box(const ErasingOptions& options, int64_t height, int64_t width,
                                         Random& random);

/// Random erasing (Zhong et al., 2020) of a normalised image. [3, H, W]
class RandomErasing {
 public:
  RandomErasing(const ErasingOptions& options, const std::array<float, 3>& mean);

  /// Draws what is erased from an image of this size, an empty box if nothing. Afterwards `random` stands
  /// where the noise begins.
  Erasure draw(int64_t height, int64_t width, Random& random) const;
  const ErasingFill& fill() const { return fill_; }
  void operator()(std::span<float> picture, const Shape& shape, Random& random) const;

 private:
  ErasingOptions options_;
  ErasingFill fill_;
};

}  // namespace tessera
