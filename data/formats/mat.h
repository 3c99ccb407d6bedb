#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

// A numeric array of a MATLAB level-5 file (MathWorks, "MAT-File Format", chapter 1). Column major: the
// first of its sizes runs fastest.
struct MatVariable {
  std::string name;
  int array_class;  // 6 double, 7 single, 8 int8, 9 uint8, .. 15 uint64; stored perhaps in another type
  std::vector<int64_t> sizes;

  int64_t elements() const;
};

inline constexpr int mat_uint8 = 9;  // MatVariable::array_class

// The arrays of a file, from its first byte to its last: every tag, size and checksum is looked at, so that
// what list_mat lets pass is what the format's own libraries expect. Needs a few hundred kB whatever the file
// claims. Fails, naming file and offset, for another format (version 7.3 is HDF5), a file that is cut, sizes
// that contradict each other, a damaged compressed part, complex arrays, and whatever is no numeric array.
std::vector<MatVariable> list_mat(const std::filesystem::path& path);

// The values of one of those arrays, read by matio: all of an array of bytes, or numbers of any class. Fails
// where this build lacks matio. `variable` is what list_mat said of this very file.
std::vector<uint8_t> read_mat_bytes(const std::filesystem::path& path, const MatVariable& variable);
std::vector<double> read_mat_numbers(const std::filesystem::path& path, const MatVariable& variable);

}  // namespace tessera
