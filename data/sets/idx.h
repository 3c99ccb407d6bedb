#pragma once

#include "data/dataset.h"

namespace tessera {

// A file of MNIST's IDX format: two zero bytes, 08 (unsigned bytes), the number of dimensions, their sizes as
// big-endian u32, then the bytes, row by row. Plain or gzip.
struct IdxFile {
  std::vector<int64_t> sizes;
  std::vector<uint8_t> bytes;
};

// Fails, naming the file, for another magic number or rank, for sizes past 2^30 bytes in all, and for a file
// that holds fewer or more bytes than its sizes say.
IdxFile read_idx(const std::filesystem::path& path, int rank);

// `name` is "mnist" or "fashion-mnist": 28 x 28 grey pictures of ten classes, shown as RGB; an image_size of
// 32 pads them with 2 black pixels a side. `dir` holds {train,t10k}-{images-idx3,labels-idx1}-ubyte, with or
// without .gz.
Dataset open_idx(const std::string& name, const std::filesystem::path& dir, const DatasetOptions& options);

}  // namespace tessera
