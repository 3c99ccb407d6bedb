#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace tessera {

// A file of MNIST's IDX format, plain or gzip: two zero bytes, 08 (the elements are unsigned bytes), the
// number of dimensions, their sizes as big-endian u32, then the bytes in row-major order.
struct IdxFile {
  std::vector<int64_t> sizes;
  std::vector<uint8_t> bytes;
};

// Reads a file of `rank` dimensions. Fails, naming the file, for another magic number or rank, for sizes
// whose product exceeds 2^30 bytes, and for a file whose length contradicts its sizes.
IdxFile read_idx(const std::filesystem::path& path, int rank);

}  // namespace tessera
