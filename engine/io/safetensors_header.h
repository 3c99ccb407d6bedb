#pragma once

// What safetensors.cpp and tensor_stream.cpp share: the header of a safetensors file.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/shape.h"
#include "engine/io/file.h"

namespace tessera::safetensors {

inline constexpr const char* metadata_key = "__metadata__";
inline constexpr const char* checksum_key = "xxh3";  // in the metadata of files that are written here

struct StoredType {
  std::string_view name;  // in the file
  size_t bytes;           // an element, there
  DType dtype;            // here
};
inline constexpr std::array<StoredType, 8> stored_types{{{"F64", 8, DType::f64},
                                                         {"I64", 8, DType::i64},
                                                         {"F32", 4, DType::f32},
                                                         {"BF16", 2, DType::bf16},
                                                         {"U8", 1, DType::u8},
                                                         {"I32", 4, DType::i64},
                                                         {"F16", 2, DType::f32},
                                                         {"BOOL", 1, DType::u8}}};

struct Entry {
  std::string name;
  const StoredType* type;
  Shape shape;
  uint64_t begin, end;  // bytes after the header
};

struct Header {
  std::string text;            // the JSON, without its length
  std::vector<Entry> entries;  // in the order of their data, which they fill without gaps
  std::map<std::string, std::string> metadata;
  uint64_t data = 0;  // where in the file the data begins
};

// Reads and checks everything but the data. Fails, naming file and tensor, for all that read_safetensors()
// refuses, save the checksum.
Header read_header(const InputFile& file);

// "FILE: tensor 'NAME' ", with which an error about a tensor begins.
std::string tensor_in(const std::string& where, std::string_view name);

// Writes `count` stored elements as the type that they have here: F16 as float, I32 as int64_t, BOOL as
// bytes.
void convert(const StoredType& type, const void* stored, int64_t count, void* to);

}  // namespace tessera::safetensors
