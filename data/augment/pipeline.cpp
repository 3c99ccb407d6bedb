#include "data/augment/pipeline.h"

#include "data/augment/crop.h"
#include "data/augment/flip.h"
#include "engine/core/error.h"

namespace tessera {

Pipeline::Pipeline(const Dataset& dataset)
    : image_shape_(dataset.image_shape), normalise_(dataset.normalisation) {}

Pipeline Pipeline::training(const Dataset& dataset, const AugmentOptions& options) {
  check(options.crop_padding >= 0, "augment: crop padding ", options.crop_padding, " is negative");
  Pipeline pipeline(dataset);
  if (options.flip) pipeline.then(RandomFlip{});
  if (options.crop_padding > 0) pipeline.then(PaddedCrop{options.crop_padding});
  return pipeline;
}

Pipeline& Pipeline::then(PixelOp op) {
  pixel_ops_.push_back(std::move(op));
  return *this;
}

Pipeline& Pipeline::then(FloatOp op) {
  float_ops_.push_back(std::move(op));
  return *this;
}

void Pipeline::move(Image& image, Random& random) const {
  for (const PixelOp& op : pixel_ops_) op(image, random);
  check(image.height == image_shape_[1] && image.width == image_shape_[2], "augment: an image of ",
        image.height, " x ", image.width, " pixels, the batch holds ", image_shape_);
}

void Pipeline::mask(Image& mask, Random random, int64_t* to) const {
  move(mask, random);
  for (size_t p = 0; p < mask.pixels.size(); p += 3) *to++ = mask.pixels[p] > 0 ? mask.pixels[p] - 1 : none;
}

void Pipeline::operator()(Image& image, Random random, float* to) const {
  move(image, random);
  normalise_(image, to);
  const std::span<float> floats(to, static_cast<size_t>(image_shape_.elements()));
  for (const FloatOp& op : float_ops_) op(floats, image_shape_, random);
}

}  // namespace tessera
