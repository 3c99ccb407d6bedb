#pragma once

// What a data set is to everything else: two splits of labelled 8-bit RGB pictures of one size, the names of
// their classes, and the numbers that normalise them.

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/formats/image.h"
#include "engine/core/shape.h"

namespace tessera {

// A numbered set of labelled pictures. Every member is safe to call from many threads at once.
class Split {
 public:
  virtual ~Split() = default;
  virtual int64_t size() const = 0;
  // The class of picture i, in [0, classes).
  virtual int64_t label(int64_t i) const = 0;
  // Writes picture i into `out`, whose memory is used again. Fails, naming the file, where it cannot be
  // decoded.
  virtual void image(int64_t i, Image& out) const = 0;
  // The same before it was fitted to the data set's size.
  virtual void original(int64_t i, Image& out) const { image(i, out); }
  // Where picture i comes from, for messages: its path, or a file and a record number.
  virtual std::string source(int64_t i) const = 0;
  // What picture i is called in what lies beside the split, whatever part of it is used: its file's path from
  // the folder that holds all of the split's, without extension; or its number.
  virtual std::string name(int64_t i) const { return std::to_string(i); }
  // Whether the pictures have a class for each pixel, for segmentation.
  virtual bool has_masks() const { return false; }
  // Writes the mask of picture i into `out`, of the picture's size: the pixel's class + 1 in all three
  // channels, 0 for pixels of no class. So it moves as its picture does, and what comes in is of no class.
  // Fails where there are no masks.
  virtual void mask(int64_t i, Image& out) const;
  // The same of the picture before it was fitted.
  virtual void original_mask(int64_t i, Image& out) const { mask(i, out); }
};

// Pixels are scaled to [0, 1], then (value - mean) / deviation by channel.
struct Normalisation {
  std::array<float, 3> mean, deviation;
};

// ImageNet's constants, for data sets that have none of their own.
inline constexpr Normalisation imagenet_normalisation{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};

struct Dataset {
  std::string name;
  std::vector<std::string> class_names;
  Shape image_shape;  // [3, H, W]
  Normalisation normalisation = imagenet_normalisation;
  std::shared_ptr<const Split> train, validation;
  std::vector<std::string> notes;  // what a reader should know: how it was split, what was left out
  int64_t classes_of_whole = 0;    // of the data set that this one is the first classes of; 0: of none

  int64_t classes() const { return static_cast<int64_t>(class_names.size()); }
};

struct DatasetOptions {
  int image_size = 0;                      // side in pixels; 0 is the data set's own
  uint64_t seed = 0;                       // of a folder's split and of shapes
  int64_t train_images = 0;                // so many of the training pictures, drawn by the seed; 0 is all
  int64_t validation_images = 0;           // likewise
  double validation_fraction = 0.1;        // of each class of a folder that has no validation folder
  bool coarse_labels = false;              // cifar100: the 20 superclasses
  size_t cache_bytes = size_t{256} << 20;  // decoded pictures that a split of files may keep
};

// Pictures in memory, 1 (grey) or 3 bytes a pixel. [size, H, W, channels]
class StoredSplit : public Split {
 public:
  // Fails unless the pixels fill as many pictures as there are labels. `origin` names them in messages.
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

// The same with masks, whose bytes are class + 1, or 0. [size, H, W]
class MaskedSplit : public StoredSplit {
 public:
  // Fails unless there are 3 bytes of `pixels` and one of `masks` for each pixel.
  MaskedSplit(int height, int width, std::vector<uint8_t> pixels, std::vector<uint8_t> masks,
              const std::vector<int32_t>& labels, const std::string& origin);

  bool has_masks() const override { return true; }
  void mask(int64_t i, Image& out) const override { masks_.image(i, out); }

 private:
  StoredSplit masks_;
};

// Picture files, decoded whenever they are asked for and fitted to image_size (resize.h); the first
// `cache_bytes` of decoded pictures are kept.
class FileSplit : public Split {
 public:
  struct Item {
    std::filesystem::path path;
    int32_t label;
  };

  FileSplit(std::vector<Item> items, int image_size, size_t cache_bytes);
  ~FileSplit() override;

  int64_t size() const override { return static_cast<int64_t>(items_.size()); }
  int64_t label(int64_t i) const override { return items_[static_cast<size_t>(i)].label; }
  void image(int64_t i, Image& out) const override;
  void original(int64_t i, Image& out) const override {
    out = load_image(items_[static_cast<size_t>(i)].path);
  }
  std::string source(int64_t i) const override { return items_[static_cast<size_t>(i)].path.string(); }
  std::string name(int64_t i) const override;

 private:
  void keep(int64_t i, const Image& image) const;

  std::vector<Item> items_;
  std::filesystem::path folder_;  // the innermost that holds all of them
  int image_size_;
  size_t image_bytes_;
  mutable std::vector<std::atomic<uint8_t*>> cache_;  // [size]; null where not decoded yet
  mutable std::atomic<int64_t> room_;                 // pictures that the cache may still take
};

// Pictures in each class. [classes]
std::vector<int64_t> class_counts(const Split& split, int64_t classes);

// Decodes every picture, in parallel; the messages of those that fail, in the order of the pictures.
std::vector<std::string> unreadable_images(const Split& split);

}  // namespace tessera
