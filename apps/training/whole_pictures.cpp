#include "apps/training/whole_pictures.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "apps/training/number_watch.h"
#include "data/augment/normalise.h"
#include "data/formats/resize.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

constexpr double longest = 4;  // of the longer side, in shorter sides: 2048 beside 512 pixels

constexpr int64_t most_pixels = 1 << 25;  // of a picture, whose answer has a number a class at each of them

// [1, 3, H, W]
Tensor normalised(const Image& image, const Normalise& normalise) {
  const Tensor pixels = Tensor::empty({1, 3, image.height, image.width});
  normalise(image, pixels.data<float>());
  return pixels;
}

// The class of each pixel of a stored mask, whose bytes are class + 1, or 0. [1, H, W]
Tensor classes_of(const Image& mask) {
  const Tensor classes = Tensor::empty({1, mask.height, mask.width}, DType::i64);
  for (int64_t i = 0; i < classes.elements(); ++i) {
    const int64_t byte = mask.pixels[static_cast<size_t>(3 * i)];
    classes.data<int64_t>()[i] = byte == 0 ? no_class : byte - 1;
  }
  return classes;
}

// The right pixels and all pixels of each class.
class ClassPixels {
 public:
  explicit ClassPixels(int64_t classes) : right_(static_cast<size_t>(classes)), all_(right_) {}

  void add(const Tensor& predicted, const Tensor& target) {
    for (int64_t i = 0; i < target.elements(); ++i) {
      const int64_t truth = target.data<int64_t>()[i];
      if (truth == no_class) continue;
      ++all_[static_cast<size_t>(truth)];
      right_[static_cast<size_t>(truth)] += predicted.data<int64_t>()[i] == truth;
    }
  }

  double mean_accuracy() const {
    double sum = 0, present = 0;
    for (size_t k = 0; k < all_.size(); ++k)
      if (all_[k] > 0) sum += static_cast<double>(right_[k]) / static_cast<double>(all_[k]), ++present;
    return sum / present;
  }

 private:
  std::vector<int64_t> right_, all_;  // [K]
};

}  // namespace

std::array<int, 2> scaled_size(int height, int width, int64_t short_side, double scale) {
  check(height > 0 && width > 0 && short_side > 0 && scale > 0, "segment: ", width, " x ", height,
        " pixels to a shorter side of ", short_side, " times ", scale, "; positive numbers are wanted");
  const double side = std::floor(static_cast<double>(short_side) * scale),
               factor = std::min(side / std::min(height, width), longest * side / std::max(height, width));
  check(factor * height * factor * width <= most_pixels, "segment: ", width, " x ", height,
        " pixels to a shorter side of ", short_side, " times ", scale, ": more than ", most_pixels,
        " pixels; a smaller scale is wanted (--scales, --short-side)");
  const auto sized = [factor](int length) { return std::max(1, static_cast<int>(length * factor + 0.5)); };
  return {sized(height), sized(width)};
}

WholePictureScores judge_whole_pictures(const CropSegmenter& segmenter, const Split& split,
                                        const Normalisation& normalisation,
                                        const WholePictureOptions& options) {
  const int64_t side = options.short_side > 0 ? options.short_side : segmenter.crop;
  const int64_t stride = options.stride > 0 ? options.stride : std::max<int64_t>(1, segmenter.crop * 2 / 3);
  const Normalise normalise(normalisation);
  std::optional<SegmentationCounts> counts;
  std::optional<ClassPixels> by_class;
  Image picture, mask;
  for (int64_t i = 0; i < split.size(); ++i) {
    split.original(i, picture);
    split.original_mask(i, mask);
    std::vector<Tensor> scaled;
    for (const double scale : options.scales) {
      const auto [height, width] = scaled_size(picture.height, picture.width, side, scale);
      scaled.push_back(normalised(resize_bilinear(picture, height, width), normalise));
    }
    const Tensor probabilities =
        segment_probabilities(segmenter, scaled, options.flips, picture.height, picture.width, stride);
    if (const auto bad = not_finite(probabilities))
      fail("segment: ", split.source(i), ": the model's outputs are not finite: ", *bad);
    const Tensor predicted = largest_class(probabilities), target = classes_of(mask);
    if (!counts) counts.emplace(probabilities.dim(1)), by_class.emplace(probabilities.dim(1));
    counts->add(predicted, target);
    by_class->add(predicted, target);
  }
  check(counts.has_value(), "segment: the split has no picture");
  return {split.size(), *counts, by_class->mean_accuracy()};
}

}  // namespace tessera
