#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "engine/core/named_tensors.h"

namespace tessera {

// The arrays of a NumPy file: of an .npz archive (a ZIP file of .npy files, stored or deflated, ZIP64 too) by
// their names, of an .npy file as "arr_0", the name that NumPy gives. Types <f4, <f8, <i8 and |u1 keep
// theirs; <f2 becomes f32, <i4 i64, |b1 u8. Every size, offset and checksum is verified. Fails, naming file
// and array, for a file that is cut short or contradicts itself, for other types, and for arrays in Fortran's
// order.
//
// It is written by hand because libarchive and libzip are not linked by the program that trains, and because
// an archive is refused here before its claims cost memory.
NamedTensors read_numpy(const std::filesystem::path& path);

// An array that is to be written: f32, f64, i64 or u8, in C's order.
struct NumpyArray {
  std::string name;
  DType dtype;
  Shape shape;
  std::string_view bytes;
};

// Writes an .npz archive, stored and as ZIP64, as numpy.savez does, by write_file_atomically(). Equal arrays
// make equal bytes. Fails for bytes that are not as many as shape and type say.
void write_npz(const std::filesystem::path& path, std::span<const NumpyArray> arrays);

}  // namespace tessera
