#pragma once

#include <functional>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

// Segmentation of images of any size by a network of a fixed size, and the scores of the result.

/// The label of pixels that belong to no class.
inline constexpr int64_t no_class = 255;

/// A network that segments square crops, [B, C, crop, crop] -> [B, K, crop, crop].
struct CropSegmenter {
  std::function<Tensor(const Tensor& images)> logits;
  int64_t crop = 0;
};

/// The first pixels of crops along an axis: every `stride` pixels, the last crop moved back to end at the
/// border. Fails unless stride and crop are positive, the stride is at most the crop, and the crop fits.
std::vector<int64_t> crop_starts(int64_t length, int64_t crop, int64_t stride);

/// Sliding-window logits of images [B, C, H, W] of any size -> [B, K, H, W], the mean over overlapping crops.
/// Images smaller than a crop are padded with zeros on the right and at the bottom. Fails unless stride is
/// positive and at most a crop.
Tensor slide(const CropSegmenter& segmenter, const Tensor& images, int64_t stride);

/// Multi-scale testing: the class probabilities [B, K, height, width], averaged over one batch of images at
/// several sizes (`scaled`), each run by slide() and, with `flips`, once more mirrored left to right.
Tensor segment_probabilities(const CropSegmenter& segmenter, const std::vector<Tensor>& scaled, bool flips,
                             int64_t height, int64_t width, int64_t stride);

/// The class with the largest score of each pixel, the first of equal ones. [B, K, H, W] -> i64 [B, H, W]
Tensor largest_class(const Tensor& scores);

/// The confusion matrix of the pixels of all images that are added. Pixels of no_class do not count.
class SegmentationCounts {
 public:
  explicit SegmentationCounts(int64_t classes);

  /// Adds predicted and true classes, i64 of one shape. Fails for a class outside 0 .. K - 1.
  void add(const Tensor& predicted, const Tensor& target);

  struct Scores {
    double pixel_accuracy;    ///< pixels of the right class / all
    double mean_iou;          ///< over the classes with at least one pixel
    std::vector<double> iou;  ///< hits / (predicted + true - hits); NaN without a pixel
  };
  Scores scores() const;

 private:
  int64_t classes_;
  std::vector<int64_t> pairs_;  ///< [true class, predicted class]
};

}  // namespace tessera
