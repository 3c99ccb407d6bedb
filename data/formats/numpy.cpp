#include "data/formats/numpy.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <regex>
#include <vector>

#include "data/formats/zip.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"
#include "engine/io/file.h"
#include "engine/io/safetensors.h"

namespace tessera {

namespace {

constexpr int64_t largest_file = int64_t{1} << 36;  // bytes
constexpr std::string_view npy_magic = "\x93NUMPY", zip_magic = "PK\x03\x04";
constexpr size_t longest_header = 4096, alignment = 64;

struct NumpyType {
  std::string_view name;  // in the file
  size_t bytes;           // an element, there
  DType dtype;            // here
};
constexpr std::array<NumpyType, 7> types{{{"<f4", 4, DType::f32},
                                          {"<f8", 8, DType::f64},
                                          {"<i8", 8, DType::i64},
                                          {"|u1", 1, DType::u8},
                                          {"<f2", 2, DType::f32},
                                          {"<i4", 4, DType::i64},
                                          {"|b1", 1, DType::u8}}};

const NumpyType& type_of(const std::string& where, const std::string& name) {
  std::string known;
  for (const NumpyType& type : types) {
    if (type.name == name) return type;
    known += (known.empty() ? "" : ", ") + std::string(type.name);
  }
  fail(where, ": has the type '", printable(name, false), "'; those known are ", known);
}

// "(3, 4)" without its parentheses: digits, commas and spaces.
Shape shape_of(const std::string& where, const std::string& text) {
  std::vector<int64_t> sizes;
  int64_t total = 16;  // as strict as Shape
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {
    int64_t size = 0;
    const auto read = std::from_chars(at, end, size);
    check(read.ec == std::errc(), where, ": has the shape (", printable(text), ")");
    check(!__builtin_mul_overflow(total, std::max<int64_t>(size, 1), &total), where, ": has the shape (",
          printable(text), "), which is more than any memory");
    sizes.push_back(size);
    for (at = read.ptr; at < end && (*at == ',' || *at == ' ');) ++at;
  }
  check(sizes.size() <= Shape::max_rank, where, ": has ", sizes.size(), " axes, at most ", Shape::max_rank,
        " are supported");
  return Shape(sizes);
}

template <class From, class To, class F> void convert(const char* from, To* to, int64_t n, F&& f) {
  for (int64_t i = 0; i < n; ++i) {
    From value;
    std::memcpy(&value, from + static_cast<size_t>(i) * sizeof(From), sizeof(From));
    to[i] = f(value);
  }
}

Tensor tensor_of(const NumpyType& type, const Shape& shape, std::string_view data) {
  Tensor tensor = Tensor::empty(shape, type.dtype);
  if (type.bytes == size_of(type.dtype))
    std::memcpy(tensor.raw(), data.data(), data.size());
  else if (type.dtype == DType::f32)
    convert<uint16_t>(data.data(), tensor.data<float>(), tensor.elements(), half_to_float);
  else
    convert<int32_t>(data.data(), tensor.data<int64_t>(), tensor.elements(),
                     [](int32_t i) { return int64_t{i}; });
  return tensor;
}

// The array of an .npy file (NEP 1): magic, version, length of the header, the header as a Python literal.
Tensor read_npy(const std::string& where, std::string_view bytes) {
  check(bytes.starts_with(npy_magic) && bytes.size() >= 12, where, ": is no .npy file");
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<uint8_t>(bytes[at])); };
  const size_t version = byte(6), begin = version == 1 ? 10 : 12;
  check(version >= 1 && version <= 3, where, ": has version ", version, " of the format; 1 to 3 are read");
  const size_t length = byte(8) | byte(9) << 8 | (version == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  check(length <= bytes.size() - begin && length <= longest_header, where, ": announces a header of ", length,
        " bytes, has ", bytes.size() - begin, "; at most ", longest_header, " are read");
  static const std::regex form(
      R"(\{\s*'descr':\s*'([^']{1,16})',\s*'fortran_order':\s*(True|False),\s*'shape':\s*\(([0-9, ]*)\),?\s*\}\s*)");
  const std::string header(bytes.substr(begin, length));
  std::smatch parts;
  check(std::regex_match(header, parts, form), where, ": has the header ",
        printable(header.substr(0, 80), false),
        "; wanted {'descr': ..., 'fortran_order': ..., 'shape': (...)}");
  const NumpyType& type = type_of(where, parts[1]);
  const Shape shape = shape_of(where, parts[3]);
  check(parts[2] == "False" || shape.rank() < 2, where,
        ": is in Fortran's order; save numpy.ascontiguousarray of it");
  const std::string_view data = bytes.substr(begin + length);
  check(data.size() == static_cast<size_t>(shape.elements()) * type.bytes, where, ": has ", data.size(),
        " bytes, ", type.name, " ", shape, " takes ", static_cast<size_t>(shape.elements()) * type.bytes);
  return tensor_of(type, shape, data);
}

std::string npy_header(const std::string& path, const NumpyArray& array) {
  const auto* type =
      std::find_if(types.begin(), types.end(), [&](auto& t) { return t.dtype == array.dtype; });
  check(
      type != types.end() && array.bytes.size() == static_cast<size_t>(array.shape.elements()) * type->bytes,
      path, ": ", array.bytes.size(), " bytes for '", array.name, "' of ", array.dtype, " ", array.shape);
  std::string shape;
  for (const int64_t size : array.shape) shape += std::to_string(size) + ", ";
  if (array.shape.rank() > 1) shape.resize(shape.size() - 2);
  if (array.shape.rank() == 1) shape.pop_back();
  std::string text =
      "{'descr': '" + std::string(type->name) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  text.append(alignment - 1 - (npy_magic.size() + 4 + text.size()) % alignment, ' ');
  text += '\n';
  const char before[] = {1, 0, static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return std::string(npy_magic) + std::string(before, sizeof before) + text;
}

}  // namespace

NamedTensors read_numpy(const std::filesystem::path& path) {
  const std::vector<uint8_t> bytes = read_bytes(path, largest_file);
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!all.starts_with(zip_magic)) return {{"arr_0", read_npy(path.string(), all)}};
  NamedTensors arrays;
  for (const ZipMember& member : read_zip(path.string(), all)) {
    std::string name = member.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    const std::string where = path.string() + ": '" + printable(name, false) + "'";
    for (const auto& [other, tensor] : arrays) check(other != name, where, " is there twice");
    std::string held;
    arrays.emplace_back(name, read_npy(where, content_of(where, member, held)));
  }
  return arrays;
}

void write_npz(const std::filesystem::path& path, std::span<const NumpyArray> arrays) {
  std::vector<ZipEntry> entries;
  for (const NumpyArray& array : arrays)
    entries.push_back({array.name + ".npy", {npy_header(path.string(), array), array.bytes}});
  write_zip(path, entries);
}

}  // namespace tessera
