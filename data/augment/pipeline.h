#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "data/augment/erasing.h"
#include "data/augment/normalise.h"
#include "data/augment/operation.h"
#include "data/augment/options.h"
#include "data/dataset.h"
#include "engine/core/random.h"

namespace tessera {

/// Changes an image in place; all its draws come from the image's own random stream. A mask goes through the
/// same operations with the same draws and takes part in the moves alone.
using PixelOp = std::function<void(Image&, Random&, Layer)>;
/// Writes down what a PixelOp draws for an image of this size, without pixels.
using DrawOp = std::function<void(Random&, int height, int width, std::vector<Change>&)>;

/// Turns one stored image into its place in a batch, in three stages: operations on bytes, normalisation to
/// floats, random erasing. A pipeline may be used by many threads at once.
class Pipeline {
 public:
  /// Only normalises, for evaluation.
  explicit Pipeline(const Dataset& dataset);
  /// Augments as `options` say, in their order.
  static Pipeline training(const Dataset& dataset, const AugmentOptions& options);

  Pipeline& then(PixelOp op);
  /// Adds an operation that can draw without pixels: it has draw(), most_changes() and is a PixelOp.
  template <class Op> Pipeline& then_drawn(const Op& op) {
    draws_.push_back([op](Random& random, int height, int width, std::vector<Change>& to) {
      op.draw(random, height, width, to);
    });
    most_changes_ += op.most_changes();
    return then(PixelOp(op));
  }

  const Shape& image_shape() const { return image_shape_; }  ///< [3, H, W]; of latents [C, H, W]
  /// Whether it only normalises.
  bool keeps_images() const { return pixel_ops_.empty() && !scene_crop_ && !erasing_; }
  /// Whether it takes images of any size as they are stored, rather than fitted to the data set's size.
  bool takes_originals() const { return takes_originals_; }
  /// Whether a scene crop of the stored image and its mask comes before the three stages. It draws from a
  /// stream of its own.
  bool cuts_scenes() const { return scene_crop_.has_value(); }
  void cut_scene(Image& picture, Image& mask, const Random& random) const;
  /// Reads image i of the split, stored or fitted, as the pipeline takes it.
  void read(const Split& split, int64_t i, Image& image) const {
    return takes_originals_ ? split.original(i, image) : split.image(i, image);
  }
  /// Runs the three stages on `image`, which is overwritten, and writes image_shape().elements() floats.
  /// Fails if the operations on bytes leave an image of another size.
  void operator()(Image& image, Random random, float* to) const;
  /// The map from the batch's image back to an image of this size, drawn from the same `random`.
  Affine map_of(Random random, int height, int width) const;
  /// Moves a mask (Split::mask) as the image moves under the same `random`, and writes the class of each
  /// pixel or `none`. [H, W]
  void mask(Image& mask, Random random, int64_t* to) const;

  static constexpr int64_t none = 255;

  // --- for batches that a GPU makes (data/feed.h) ---

  /// Whether all operations on bytes can draw without pixels.
  bool is_drawn() const { return draws_.size() == pixel_ops_.size(); }
  int most_changes() const { return most_changes_; }  ///< upper bound for one image
  /// Draws the changes of the first stage for an image of the batch's size.
  void draw(Random& random, std::vector<Change>& changes) const;
  /// Runs the first stage.
  void run_pixel_ops(Image& image, Random& random, Layer layer) const;
  /// Draws the erasure, which comes after the draws of the first stage.
  Erasure draw_erasure(Random& random) const;
  ErasingFill erasing_fill() const { return erasing_ ? erasing_->fill() : ErasingFill{}; }
  const Normalise& normalise() const { return normalise_; }

 private:
  Shape image_shape_;
  bool takes_originals_ = false;
  std::optional<ResizedCrop> resized_crop_;  ///< also the first of pixel_ops_
  std::optional<SceneCrop> scene_crop_;
  std::vector<PixelOp> pixel_ops_;
  std::vector<DrawOp> draws_;  ///< of the pixel_ops_ that can draw without pixels
  int most_changes_ = 0;
  Normalise normalise_;
  std::optional<RandomErasing> erasing_;
};

}  // namespace tessera
