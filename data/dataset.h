#pragma once

// A data set: two splits of labelled 8-bit RGB images of one size, the names of the classes, and the
// constants that normalise pixels.

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/formats/image.h"
#include "data/formats/resize.h"
#include "data/image_cache.h"
#include "engine/core/random.h"
#include "engine/core/shape.h"

namespace tessera {

/// A numbered collection of labelled images. All members may be called from many threads at once.
class Split {
 public:
  virtual ~Split() = default;
  virtual int64_t size() const = 0;
  /// The class of image i, in [0, classes).
  virtual int64_t label(int64_t i) const = 0;
  /// Writes image i to `out`, reusing its memory. Fails, naming the file, if it cannot be decoded.
  virtual void image(int64_t i, Image& out) const = 0;
  /// Writes image i as it is stored, before it is fitted to the data set's size.
  virtual void original(int64_t i, Image& out) const { image(i, out); }
  /// Where image i comes from, for messages: its path, or a file and a record number.
  virtual std::string source(int64_t i) const = 0;
  /// The name under which files beside the data set (token labels) refer to image i: its path relative to the
  /// innermost folder with all of the split's files, without extension, or its number. A subset keeps the
  /// names.
  virtual std::string name(int64_t i) const { return std::to_string(i); }
  /// Whether every pixel has a class, for segmentation.
  virtual bool has_masks() const { return false; }
  /// Writes the mask of image i, of the image's size, to `out`: class + 1 in all three channels, 0 for pixels
  /// without a class. As an Image it goes through the same moves, and the black of uncovered pixels means no
  /// class. Fails if there are no masks.
  virtual void mask(int64_t i, Image& out) const;
  /// Writes the mask of the stored image, before it is fitted.
  virtual void original_mask(int64_t i, Image& out) const { mask(i, out); }
  /// Whether there are an autoencoder's latents in place of pictures, which image() then refuses.
  virtual bool has_latents() const { return false; }
  /// Writes latent i as a network takes it, [C, H, W]. One of which the distribution is stored is drawn from
  /// `random`. Fails for numbers that are not finite, and if there are no latents.
  virtual void latent(int64_t i, Random random, float* to) const;
  /// The split that this one is a part of, or itself.
  virtual const Split& whole() const { return *this; }
};

/// Pixels v are normalised by channel: (v / 255 - mean) / deviation.
struct Normalisation {
  std::array<float, 3> mean, deviation;
};

/// ImageNet's constants, for data sets without constants of their own.
inline constexpr Normalisation imagenet_normalisation{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};

struct Dataset {
  std::string name;
  std::vector<std::string> class_names;
  Shape image_shape;  ///< [3, H, W]; of latents [C, H, W]
  Normalisation normalisation = imagenet_normalisation;
  std::shared_ptr<const Split> train, validation;
  std::vector<std::string> notes;  ///< remarks for the user: how it was split, what was left out
  int64_t classes_of_whole = 0;    ///< imagenet-100 has the first 100 of 1000; 0: not such a part
  double latent_scale = 0;         ///< what stored latents were multiplied by; 0: these are pictures

  int64_t classes() const { return static_cast<int64_t>(class_names.size()); }
};

/// What the latents of Stable Diffusion's autoencoder are multiplied by, for a deviation of about 1.
inline constexpr double usual_latent_scale = 0.18215;

struct DatasetOptions {
  int image_size = 0;                ///< side in pixels; 0: the data set's own
  uint64_t seed = 0;                 ///< of random subsets, a folder's split and the shapes
  int64_t train_images = 0;          ///< size of a random subset of the training split; 0: all
  int64_t validation_images = 0;     ///< the same for the validation split
  double validation_fraction = 0.1;  ///< held out of each class of a folder without a validation folder
  bool coarse_labels = false;        ///< CIFAR-100's 20 superclasses
  double latent_scale = usual_latent_scale;  ///< multiplies latents
  size_t cache_bytes = size_t{256} << 20;    ///< of decoded images that a split of files may keep
  SquareFit test_fit{};                      ///< of validation pictures in files; training pictures are whole
};

/// Images in memory, 1 (grey) or 3 bytes a pixel. [size, H, W, channels]
class StoredSplit : public Split {
 public:
  /// Fails unless there are pixels for as many images as labels. `origin` names the images in messages.
  StoredSplit(int height, int width, int channels, std::vector<uint8_t> pixels, std::vector<int32_t> labels,
              std::string origin);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t label(int64_t i) const override { return labels_[static_cast<size_t>(i)]; }
  void image(int64_t i, Image& out) const override;
  std::string source(int64_t i) const override;

 private:
  int height_, width_, channels_;
  std::vector<uint8_t> pixels_;
  std::vector<int32_t> labels_;
  std::string origin_;
};

/// Images and masks in memory; a mask's bytes are class + 1, or 0. [size, H, W]
class MaskedSplit : public StoredSplit {
 public:
  /// Fails unless `pixels` has 3 bytes and `masks` one byte for each pixel.
  MaskedSplit(int height, int width, std::vector<uint8_t> pixels, std::vector<uint8_t> masks,
              const std::vector<int32_t>& labels, const std::string& origin);

  bool has_masks() const override { return true; }
  void mask(int64_t i, Image& out) const override { masks_.image(i, out); }

 private:
  StoredSplit masks_;
};

/// Image files, decoded on request and fitted to image_size by fit_square in resize.h. The first
/// `cache_bytes` of decoded images are kept in memory.
class FileSplit : public Split {
 public:
  struct Item {
    std::filesystem::path path;
    int32_t label;
  };

  FileSplit(std::vector<Item> items, int image_size, size_t cache_bytes, const SquareFit& fit = {});

  int64_t size() const override { return static_cast<int64_t>(items_.size()); }
  int64_t label(int64_t i) const override { return items_[static_cast<size_t>(i)].label; }
  void image(int64_t i, Image& out) const override;
  void original(int64_t i, Image& out) const override {
    out = load_image(items_[static_cast<size_t>(i)].path);
  }
  std::string source(int64_t i) const override { return items_[static_cast<size_t>(i)].path.string(); }
  std::string name(int64_t i) const override;

  /// What it keeps of decoded images; the processes of a machine may keep them together.
  ImageCache& cache() const { return *cache_; }

 private:
  std::vector<Item> items_;
  std::filesystem::path folder_;  ///< the innermost that contains all of them
  int image_size_;
  SquareFit fit_;
  std::unique_ptr<ImageCache> cache_;
};

/// The number of images in each class. [classes]
std::vector<int64_t> class_counts(const Split& split, int64_t classes);

}  // namespace tessera
