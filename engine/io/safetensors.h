#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "engine/core/named_tensors.h"

namespace tessera {

// A safetensors file (huggingface.co/docs/safetensors): the header's length in 8 bytes, the header in JSON
// ({name: {dtype, shape, data_offsets}, "__metadata__": {key: text}}), the values; all little-endian.
struct TensorFile {
  std::string where;     // the path, for errors
  NamedTensors tensors;  // in the order of their data
  std::map<std::string, std::string> metadata;

  const Tensor* find(std::string_view name) const;  // null where there is none
  const Tensor& at(std::string_view name) const;    // fails with the nearest name
};

// Reads a whole file. F32, F64, BF16, I64 and U8 come as they are, F16 as f32, I32 as i64, BOOL as u8.
// Whatever its bytes, the memory taken is bounded by the file's size. Fails, in the name of file and tensor,
// where it is not a safetensors file, is cut, or contradicts itself: offsets that overlap, leave gaps or do
// not match shape and type, sizes that overflow, names given twice, other types.
TensorFile read_safetensors(const std::filesystem::path& path);

// Writes the tensors in their types, the widest type first (so that all are aligned) and else as given,
// by write_file_atomically. Fails for an undefined tensor, for a name given twice or not in UTF-8.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata = {});

// The value of an IEEE half precision number.
float half_to_float(uint16_t bits);

}  // namespace tessera
