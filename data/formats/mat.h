#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

// A numeric array of a MATLAB level-5 file (MathWorks, "MAT-File Format", chapter 1), in column-major order:
// the first of its sizes varies fastest.
struct MatArray {
  std::string name;
  int array_class = 0;         // the type in MATLAB: 6 double, 7 single, 8 int8, 9 uint8, .. 15 uint64
  std::vector<int64_t> sizes;  // at least two
  uint32_t storage = 0;  // the type of `data`: 1 int8, 2 uint8, 3 int16, .. 6 uint32, 7 single, 9 double,
                         // 12 int64, 13 uint64; MATLAB stores doubles that are small integers as bytes
  std::vector<uint8_t> data;  // little-endian

  int64_t elements() const;
  bool is_bytes() const { return array_class == 9 && storage == 2; }
  std::vector<double> numbers() const;  // the elements, whatever their storage
};

// Reads all arrays of a file, plain or compressed. Every tag, size and checksum is verified, and a file that
// is refused takes no more memory than its size and 64 MB, whatever it claims. Fails, naming file and offset,
// for another format (version 7.3 is HDF5), a file that is cut short, sizes that contradict each other,
// damaged compressed data, complex arrays, and elements that are not numeric arrays.
//
// It is written by hand because matio 1.5.23 cannot be trusted with a damaged file: it returns an array of
// 10^9 bytes for a file of 200 bytes that claims them, and an array cut short without an error.
std::vector<MatArray> read_mat(const std::filesystem::path& path);

}  // namespace tessera
