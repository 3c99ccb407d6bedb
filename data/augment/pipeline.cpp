#include "data/augment/pipeline.h"

#include <algorithm>
#include <cmath>

#include "data/augment/autoaugment.h"
#include "data/augment/crop.h"
#include "data/augment/flip.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

constexpr uint64_t scene_tag = 1;  // the stream of the scene crop, split off the image's stream

// Pads an image that is smaller than height x width on the right and below; the mask gets no class there.
struct Pad {
  int height, width;
  Colour fill;

  void operator()(Image& image, Random&, Layer layer) const {
    if (image.height >= height && image.width >= width) return;
    Image padded(std::max(image.height, height), std::max(image.width, width));
    const Colour colour = layer == Layer::mask ? Colour{0, 0, 0} : fill;
    for (size_t i = 0; i < padded.pixels.size(); ++i) padded.pixels[i] = colour[i % 3];
    for (int y = 0; y < image.height; ++y)
      std::copy_n(image.at(y, 0), int64_t{3} * image.width, padded.at(y, 0));
    image = std::move(padded);
  }
};

Colour colour_of(const std::array<float, 3>& mean) {
  Colour colour;
  for (size_t c = 0; c < 3; ++c)
    colour[c] = static_cast<uint8_t>(std::clamp(std::lround(255 * mean[c]), 0l, 255l));
  return colour;
}

}  // namespace

Pipeline::Pipeline(const Dataset& dataset)
    : image_shape_(dataset.image_shape), normalise_(dataset.normalisation) {}

Pipeline Pipeline::training(const Dataset& dataset, const AugmentOptions& options) {
  check(options.crop_padding >= 0, "augment: crop padding ", options.crop_padding, " is negative");
  check(!options.scene_crop || !options.resized_crop,
        "augment: scene_crop and resized_crop both cut the stored picture; give one of them");
  const int height = static_cast<int>(dataset.image_shape[1]),
            width = static_cast<int>(dataset.image_shape[2]);
  Pipeline pipeline(dataset);
  if (options.scene_crop) pipeline.scene_crop_.emplace(*options.scene_crop, height, width);
  if (options.resized_crop) {
    pipeline.resized_crop_ = ResizedCrop{*options.resized_crop, height, width};
    pipeline.then(PixelOp(*pipeline.resized_crop_));
    pipeline.takes_originals_ = true;
  }
  if (options.flip) pipeline.then_drawn(RandomFlip{});
  if (options.crop_padding > 0) pipeline.then_drawn(PaddedCrop{options.crop_padding});
  if (!options.autoaugment.empty()) pipeline.then_drawn(AutoAugment(options.autoaugment));
  if (options.randaugment)
    pipeline.then_drawn(RandAugment(*options.randaugment, colour_of(dataset.normalisation.mean)));
  if (options.photometric) pipeline.then(PixelOp(Photometric{*options.photometric}));
  if (options.scene_crop) pipeline.then(PixelOp(Pad{height, width, colour_of(dataset.normalisation.mean)}));
  if (options.erasing.probability > 0) pipeline.erasing_.emplace(options.erasing, dataset.normalisation.mean);
  return pipeline;
}

Pipeline& Pipeline::then(PixelOp op) {
  pixel_ops_.push_back(std::move(op));
  return *this;
}

void Pipeline::cut_scene(Image& picture, Image& mask, const Random& random) const {
  Random own = random.split(scene_tag);
  (*scene_crop_)(picture, mask, own);
}

Affine Pipeline::map_of(Random random, int height, int width) const {
  Affine map;
  if (resized_crop_) {
    const PixelBox box = draw_resized_crop(resized_crop_->options, height, width, random);
    map = {.a = static_cast<double>(box.right - box.left) / resized_crop_->width,
           .c = static_cast<double>(box.left),
           .e = static_cast<double>(box.bottom - box.top) / resized_crop_->height,
           .f = static_cast<double>(box.top)};
  }
  std::vector<Change> changes;
  draw(random, changes);
  for (const Change& change : changes) map = chained(map, change.map);
  return map;
}

void Pipeline::run_pixel_ops(Image& image, Random& random, Layer layer) const {
  for (const PixelOp& op : pixel_ops_) op(image, random, layer);
  check(image.height == image_shape_[1] && image.width == image_shape_[2], "augment: an image of ",
        image.height, " x ", image.width, " pixels, the batch holds ", image_shape_);
}

void Pipeline::draw(Random& random, std::vector<Change>& changes) const {
  for (const DrawOp& op : draws_)
    op(random, static_cast<int>(image_shape_[1]), static_cast<int>(image_shape_[2]), changes);
}

Erasure Pipeline::draw_erasure(Random& random) const {
  return erasing_ ? erasing_->draw(image_shape_[1], image_shape_[2], random) : Erasure{};
}

void Pipeline::mask(Image& mask, Random random, int64_t* to) const {
  run_pixel_ops(mask, random, Layer::mask);
  for (size_t p = 0; p < mask.pixels.size(); p += 3) *to++ = mask.pixels[p] > 0 ? mask.pixels[p] - 1 : none;
}

void Pipeline::operator()(Image& image, Random random, float* to) const {
  run_pixel_ops(image, random, Layer::picture);
  normalise_(image, to);
  const std::span<float> floats(to, static_cast<size_t>(image_shape_.elements()));
  if (erasing_) (*erasing_)(floats, image_shape_, random);
}

}  // namespace tessera
