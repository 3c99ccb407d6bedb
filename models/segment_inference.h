#pragma once

#include <functional>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

// Segmenting images of any size with a network of a fixed one, and judging the result.

// The label of pixels that belong to no class.
inline constexpr int64_t no_class = 255;

// A segmenter of square crops, [B, C, crop, crop] -> [B, K, crop, crop].
struct CropSegmenter {
  std::function<Tensor(const Tensor& images)> logits;
  int64_t crop = 0;
};

// Where crops start on an axis: every `stride` pixels, the last one moved back so as to end at the border.
std::vector<int64_t> crop_starts(int64_t length, int64_t crop, int64_t stride);

// Logits of images [B, C, H, W] of any size -> [B, K, H, W]: the mean over overlapping crops. Images smaller
// than a crop are padded with zeros on the right and at the bottom. Fails unless stride is positive.
Tensor slide(const CropSegmenter& segmenter, const Tensor& images, int64_t stride);

// Multi-scale testing: class probabilities [B, K, height, width], the mean over `scaled`, one batch of images
// at several sizes, each run by slide() and, with `flips`, mirrored left to right too.
Tensor segment_probabilities(const CropSegmenter& segmenter, const std::vector<Tensor>& scaled, bool flips,
                             int64_t height, int64_t width, int64_t stride);

// The class of the largest score of each pixel, the first of equals: [B, K, H, W] -> i64 [B, H, W].
Tensor largest_class(const Tensor& scores);

// What was predicted for the pixels of each class, over as many images as are added. Pixels of no_class do
// not count.
class SegmentationCounts {
 public:
  explicit SegmentationCounts(int64_t classes);

  // i64 of one shape. Fails for a class that is none of 0 .. K-1.
  void add(const Tensor& predicted, const Tensor& target);

  struct Scores {
    double pixel_accuracy;    // pixels of the right class / all
    double mean_iou;          // over the classes that have one
    std::vector<double> iou;  // hits / (predicted + true - hits); NaN for a class without a pixel
  };
  Scores scores() const;

 private:
  int64_t classes_;
  std::vector<int64_t> pairs_;  // [true class, predicted class]
};

}  // namespace tessera
