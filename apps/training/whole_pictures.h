#pragma once

#include <array>
#include <vector>

#include "data/dataset.h"
#include "models/segment_inference.h"

namespace tessera {

/// How a segmenter is judged on pictures of their own size, as MMSegmentation judges on ADE20K.
struct WholePictureOptions {
  int64_t short_side = 0;         ///< pixels of the shorter side at scale 1; 0: a window's
  int64_t stride = 0;             ///< pixels from window to window; 0: two thirds of a window, rounded down
  std::vector<double> scales{1};  ///< each picture is segmented at each of these sizes
  bool flips = false;             ///< and at each size once more mirrored left to right
};

/// Height and width of a picture whose shorter side becomes short_side * scale and whose longer side stays
/// within four times that, in proportion, rounded to the nearest pixel. Fails for more than 2^25 pixels, and
/// for what is not positive.
std::array<int, 2> scaled_size(int height, int width, int64_t short_side, double scale);

struct WholePictureScores {
  int64_t images = 0;
  SegmentationCounts pixels;  ///< of all pictures
  double mean_accuracy = 0;   ///< mean over the classes of: right pixels / pixels of the class
};

/// Judges the segmenter on the whole of each stored picture of a split with masks. The logits are averaged
/// over the windows of one size and resized to the picture's own; the probabilities are averaged over scales
/// and mirror images, and the likeliest class is compared with the stored mask. One picture is in memory at a
/// time. Fails for scales that are not positive, and naming the picture where answers are not finite.
WholePictureScores judge_whole_pictures(const CropSegmenter& segmenter, const Split& split,
                                        const Normalisation& normalisation,
                                        const WholePictureOptions& options);

}  // namespace tessera
