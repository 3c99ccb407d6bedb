#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "data/augment/erasing.h"
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
// What a PixelOp would draw for a picture of this size, instead of doing it.
using DrawOp = std::function<void(Random&, int height, int width, std::vector<Change>&)>;

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
  // An operation that can say what it draws: it has draw(), most_changes() and the PixelOp.
  template <class Op> Pipeline& then_drawn(const Op& op) {
    draws_.push_back([op](Random& random, int height, int width, std::vector<Change>& to) {
      op.draw(random, height, width, to);
    });
    most_changes_ += op.most_changes();
    return then(PixelOp(op));
  }

  const Shape& image_shape() const { return image_shape_; }  // [3, H, W]
  // Whether it cuts pictures out of those that are stored, whatever their size, rather than out of the data
  // set's fitted ones.
  bool takes_originals() const { return takes_originals_; }
  // Cuts a stored picture and its mask, before the stages run on them, where there is a scene crop, which
  // takes stored ones too. Its draws are a stream of their own.
  bool cuts_scenes() const { return scene_crop_.has_value(); }
  void cut_scene(Image& picture, Image& mask, const Random& random) const;
  // Picture i of the split as the pipeline takes it.
  void read(const Split& split, int64_t i, Image& image) const {
    return takes_originals_ ? split.original(i, image) : split.image(i, image);
  }
  // Runs the stages on `image`, which is used up, and writes image_shape().elements() floats. Fails if the
  // picture that reaches the second stage has another size.
  void operator()(Image& image, Random random, float* to) const;
  // Where the pixels come from that they make of a picture of this size under the same `random`.
  Affine map_of(Random random, int height, int width) const;
  // The classes of a mask (see Split::mask) after the first stage, [H, W], `none` for pixels of no class:
  // moved as the picture was under the same `random`.
  void mask(Image& mask, Random random, int64_t* to) const;

  static constexpr int64_t none = 255;

  // --- for a GPU that does it (data/feed.h) ---

  // Whether all of its operations on bytes can say what they draw.
  bool is_drawn() const { return draws_.size() == pixel_ops_.size(); }
  // Whether there are operations on floats besides random erasing.
  bool has_float_ops() const { return !float_ops_.empty(); }
  int most_changes() const { return most_changes_; }  // of a picture
  // The draws of the first stage of a picture of the batch's size.
  void draw(Random& random, std::vector<Change>& changes) const;
  // The first stage itself.
  void run_pixel_ops(Image& image, Random& random, Layer layer) const;
  // The last stage's draws, which come after those.
  Erasure draw_erasure(Random& random) const;
  ErasingFill erasing_fill() const { return erasing_ ? erasing_->fill() : ErasingFill{}; }
  const Normalise& normalise() const { return normalise_; }

 private:
  Shape image_shape_;
  bool takes_originals_ = false;
  std::optional<ResizedCrop> resized_crop_;  // the first of pixel_ops_, where there is one
  std::optional<SceneCrop> scene_crop_;
  std::vector<PixelOp> pixel_ops_;
  std::vector<DrawOp> draws_;  // of those of pixel_ops_ that have one
  int most_changes_ = 0;
  Normalise normalise_;
  std::optional<RandomErasing> erasing_;
  std::vector<FloatOp> float_ops_;
};

}  // namespace tessera
