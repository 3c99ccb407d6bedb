#pragma once

// A row of the registry: what is known of a data set before its files are opened.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace tessera {

/// A file that the authors of a data set publish.
struct PublishedFile {
  std::string url;
  int64_t bytes;            ///< 0 if unknown
  std::string md5;          ///< 32 hexadecimal digits
  bool archive;             ///< true: it is unpacked after the download
  std::string sha256 = {};  ///< 64 hexadecimal digits; empty if unknown
};

/// A data set as its authors published it: where its files are and what they hold.
struct PublishedSet {
  std::vector<PublishedFile> files{};  ///< empty: the download needs an account
  std::string folder{};  ///< that the archive unpacks, below the data folder; "" for loose files
  std::vector<std::string> markers{};  ///< paths below that folder; the set is complete when all exist
  int64_t train = 0, validation = 0;   ///< images; 0 if unknown
  int64_t classes = 0;                 ///< 0 if unknown
  int64_t leaks = 0;                   ///< validation images that are also in the training split
  int side = 0;                        ///< pixels a side of every stored image; 0 if they differ
  std::vector<std::array<std::string, 2>> sums{};  ///< {file below the folder, MD5 sum}, where published
  std::string how_to_get{};                        ///< instructions for a set without `files`
};

/// The image sizes, in pixels a side, that `open` accepts besides 0, the data set's own size.
struct ImageSizes {
  int least = 1, most = 4096;
  std::vector<int> only{};  ///< if not empty, the only sizes accepted
  std::string reason = "1 to 4096 pixels, or 0 for the data set's own size";  ///< what a refusal says
};

struct DatasetEntry {
  std::string name;
  /// Reads both splits below a folder; fails with a message that names the file.
  Dataset (*open)(const std::filesystem::path& dir, const DatasetOptions& options) = nullptr;
  ImageSizes sizes{};
  bool needs_folder = true;                ///< false: the images are drawn in memory
  bool takes_validation_fraction = false;  ///< has no validation split of its own
  bool takes_test_fit = false;             ///< its validation pictures are files of any size
  bool has_masks = false;                  ///< every pixel has a class; made for segmentation
  bool has_latents = false;                ///< an autoencoder's latents, for diffusion models
  int64_t side = 0;     ///< pixels a side for an image_size of 0; 0: what its files hold, or published->side
  int64_t classes = 0;  ///< 0: what its files hold, or published->classes
  int64_t coarse_classes = 0;  ///< classes under DatasetOptions::coarse_labels; 0: has no coarse labels
  std::optional<PublishedSet> published{};
};

}  // namespace tessera
