#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "engine/core/named_tensors.h"

namespace tessera {

/// The content of a safetensors file (huggingface.co/docs/safetensors): the header's length in 8 bytes, the
/// header in JSON ({name: {dtype, shape, data_offsets}, "__metadata__": {key: text}}), then the values; all
/// little-endian.
struct TensorFile {
  std::string where;     ///< the path, for errors
  NamedTensors tensors;  ///< in the order of their data
  std::map<std::string, std::string> metadata;
  bool checked = false;  ///< whether the file carried its checksum

  const Tensor* find(std::string_view name) const;  ///< null where there is none
  const Tensor& at(
      std::string_view name) const;  ///< fails where there is none, and suggests the nearest name
};

/// Reads a whole file. F32, F64, BF16, I64 and U8 keep their type; F16 becomes f32, I32 becomes i64, BOOL
/// becomes u8. The memory taken is bounded by the file's size, whatever its bytes. Fails, naming file and
/// tensor, if it is no safetensors file, is cut, or contradicts itself: offsets that overlap, leave gaps or
/// do not match shape and type, sizes that overflow, repeated names, other types; and if it carries a
/// checksum, as those do that are written here, and any of its bytes has changed.
TensorFile read_safetensors(const std::filesystem::path& path);

/// The metadata alone, without reading the values, so that no checksum is compared. Fails, naming the file,
/// where the header cannot be read.
std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path);

/// Writes the tensors in their types by write_file_atomically(), sorted by the width of the type, the widest
/// first, so that all are aligned, and the checksum of the whole file as "xxh3" in the metadata. Fails for an
/// undefined tensor, a repeated name, and a name that is not UTF-8.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// The value of an IEEE half precision number.
float half_to_float(uint16_t bits);

}  // namespace tessera
