#pragma once

#include <functional>
#include <span>
#include <vector>

#include "data/augment/normalise.h"
#include "data/augment/operation.h"
#include "data/augment/options.h"
#include "data/dataset.h"
#include "engine/core/random.h"

namespace tessera {

// Changes a picture in place; every draw comes from the picture's own stream. Its mask goes through the same
// operations with the same draws: where pixels are moved, the mask's move alike, and nothing else is done.
using PixelOp = std::function<void(Image&, Random&, Layer)>;
// The same on the normalised picture. [3, H, W]
using FloatOp = std::function<void(std::span<float>, const Shape&, Random&)>;

// What happens to one picture between the data set and the batch, in three stages: operations on bytes, to
// float and normalise, operations on floats. One pipeline serves many threads at once.
class Pipeline {
 public:
  // To float and normalise alone: what evaluation sees.
  explicit Pipeline(const Dataset& dataset);
  // With the augmentations of `options`, in the order of "Vision Transformer for Small-Size Datasets".
  static Pipeline training(const Dataset& dataset, const AugmentOptions& options);

  Pipeline& then(PixelOp op);
  Pipeline& then(FloatOp op);

  const Shape& image_shape() const { return image_shape_; }  // [3, H, W]
  // Whether it cuts pictures out of those that are stored, whatever their size, rather than out of the data
  // set's fitted ones.
  bool takes_originals() const { return takes_originals_; }
  // Runs the stages on `image`, which is used up, and writes image_shape().elements() floats. Fails if the
  // picture that reaches the second stage has another size.
  void operator()(Image& image, Random random, float* to) const;
  // The classes of a mask (see Split::mask) after the first stage, [H, W], `none` for pixels of no class:
  // moved as the picture was under the same `random`.
  void mask(Image& mask, Random random, int64_t* to) const;

  static constexpr int64_t none = 255;

 private:
  void run_pixel_ops(Image& image, Random& random, Layer layer) const;

  Shape image_shape_;
  bool takes_originals_ = false;
  std::vector<PixelOp> pixel_ops_;
  Normalise normalise_;
  std::vector<FloatOp> float_ops_;
};

}  // namespace tessera
