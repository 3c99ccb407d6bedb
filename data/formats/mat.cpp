#include "data/formats/mat.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>

#include "data/formats/folder.h"
#include "data/formats/mat_source.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

enum Type : uint32_t {
  int8 = 1,
  uint8 = 2,
  int16 = 3,
  uint16 = 4,
  int32 = 5,
  uint32 = 6,
  single_float = 7,
  double_float = 9,
  int64 = 12,
  uint64 = 13,
  matrix = 14,
  compressed = 15
};

constexpr int64_t header_bytes = 128, most_bytes = int64_t{1} << 31;
// Values may be kept before the whole file is known to be sound: as many bytes as the file has and these.
constexpr int64_t allowance = int64_t{48} << 20;

// Bytes per element of a storage type; 0 for types that are not numbers.
int64_t size_of_type(uint32_t type) {
  constexpr std::array<int64_t, 14> sizes{0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8};
  return type < sizes.size() ? sizes[type] : 0;
}

struct Tag {
  uint32_t type, bytes;
  std::optional<std::array<uint8_t, 4>> small;  // a small element has its data inside the tag
};

Tag read_tag(MatSource& from) {
  std::array<uint32_t, 2> words;
  from.read(words.data(), 8);
  if (words[0] >> 16 == 0) return {words[0], words[1], std::nullopt};
  const uint32_t bytes = words[0] >> 16;
  from.demand(bytes <= 4, "a small element of ", bytes, " bytes; they hold 1 to 4");
  return {words[0] & 0xFFFFu, bytes, std::bit_cast<std::array<uint8_t, 4>>(words[1])};
}

int64_t padded(int64_t bytes) { return (bytes + 7) / 8 * 8; }

// Reads a short element and its padding. `budget` is the number of bytes that its matrix has left.
std::vector<uint8_t> read_short(MatSource& from, const Tag& tag, size_t most, int64_t& budget,
                                const char* what) {
  from.demand(tag.bytes > 0 && tag.bytes <= most, "the ", what, " of an array take ", tag.bytes,
              " bytes; 1 to ", most, " are read");
  budget -= 8;
  if (tag.small) return {tag.small->begin(), tag.small->begin() + tag.bytes};
  std::vector<uint8_t> bytes(tag.bytes);
  budget -= padded(tag.bytes);
  from.demand(budget >= 0, "the ", what, " of an array go past its end");
  from.read(bytes.data(), bytes.size());
  from.skip(padded(tag.bytes) - tag.bytes);
  return bytes;
}

void read_flags(MatSource& from, int64_t& budget, MatArray& array) {
  const Tag tag = read_tag(from);
  from.demand(tag.type == uint32 && tag.bytes == 8 && !tag.small,
              "an array begins with its flags, here is an element of type ", tag.type, " and ", tag.bytes,
              " bytes");
  const std::vector<uint8_t> flags = read_short(from, tag, 8, budget, "flags");
  array.array_class = flags[0];
  from.demand(array.array_class >= 6 && array.array_class <= 15, "an array of class ", array.array_class,
              "; numbers (6 to 15) are read");
  from.demand((flags[1] & 0x08u) == 0, "an array of complex numbers; real ones are read");
}

void read_sizes(MatSource& from, int64_t& budget, MatArray& array) {
  const Tag tag = read_tag(from);
  from.demand(tag.type == int32 && tag.bytes >= 8 && tag.bytes % 4 == 0, "the sizes of an array have type ",
              tag.type, " and ", tag.bytes, " bytes; at least two int32 were expected");
  const std::vector<uint8_t> bytes = read_short(from, tag, 32, budget, "sizes");
  int64_t elements = 1;
  for (size_t i = 0; i < bytes.size(); i += 4) {
    int32_t size = 0;
    std::memcpy(&size, bytes.data() + i, 4);
    from.demand(size > 0, "an array whose size ", i / 4 + 1, " is ", size);
    from.demand(elements <= most_bytes / size, "an array of more than ", most_bytes, " elements");
    elements *= size;
    array.sizes.push_back(size);
  }
}

void read_name(MatSource& from, int64_t& budget, MatArray& array) {
  const Tag tag = read_tag(from);
  from.demand(tag.type == int8, "the name of an array has type ", tag.type, ", not int8 (1)");
  const std::vector<uint8_t> bytes = read_short(from, tag, 63, budget, "name");
  const auto in_names = [](uint8_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  from.demand(std::all_of(bytes.begin(), bytes.end(), in_names), "an array whose name has other characters ",
              "than letters, digits and _");
  array.name.assign(bytes.begin(), bytes.end());
}

// Reads the values if they fit in `room`, which shrinks by their size; otherwise skips and so verifies them.
void read_values(MatSource& from, int64_t& budget, int64_t& room, MatArray& array) {
  const Tag tag = read_tag(from);
  const int64_t each = size_of_type(tag.type), wanted = array.elements() * each;
  budget -= 8;
  from.demand(each > 0, "the values of ", array.name, " have type ", tag.type, ", which holds no numbers");
  from.demand(tag.bytes == wanted, array.name, " has ", array.elements(), " values of ", each,
              " bytes, its data ", tag.bytes, " bytes");
  array.storage = tag.type;
  room -= wanted;
  if (tag.small) {
    array.data.assign(tag.small->begin(), tag.small->begin() + wanted);
  } else {
    budget -= tag.bytes;
    from.demand(budget >= 0, "the values of ", array.name, " go past the end of the array");
    if (room >= 0) {
      array.data.resize(static_cast<size_t>(wanted));
      from.read(array.data.data(), array.data.size());
    } else {
      from.skip(wanted);
    }
  }
  from.demand(budget < 8, budget, " bytes of ", array.name, " belong to nothing");
  from.skip(budget);
}

MatArray read_matrix(MatSource& from, const Tag& tag, int64_t& room) {
  from.demand(tag.type == matrix && !tag.small, "an element of type ", tag.type, "; arrays (14) are read");
  int64_t budget = tag.bytes;
  MatArray array;
  read_flags(from, budget, array);
  read_sizes(from, budget, array);
  read_name(from, budget, array);
  read_values(from, budget, room, array);
  return array;
}

void check_header(std::ifstream& file, const std::string& path, int64_t size) {
  std::array<char, header_bytes> header{};
  file.read(header.data(), header_bytes);
  check(file.gcount() == header_bytes, path, ": has ", size, " bytes; a MATLAB file begins with a header of ",
        header_bytes);
  const bool swapped = header[126] == 'M' && header[127] == 'I';
  check(!swapped, path, ": at byte 126: written big-endian; little-endian MATLAB files are read");
  check(header[126] == 'I' && header[127] == 'M', path, ": at byte 126: no MATLAB level-5 file",
        std::memcmp(header.data(), "\x89HDF", 4) == 0 ? " (it is HDF5)" : "");
  check(header[124] == 0 && header[125] == 1, path, ": at byte 124: version ", int{header[125]}, ".",
        int{header[124]}, "; level 5 is 1.0 (save with -v7, not -v7.3)");
}

// Reads the arrays of a file of `size` bytes; the values of those that do not fit in `room` are only
// verified.
std::vector<MatArray> read_arrays(const fs::path& path, int64_t size, int64_t& room) {
  std::ifstream file(path, std::ios::binary);
  check(file.is_open(), path.string(), ": cannot be opened");
  check_header(file, path.string(), size);
  std::vector<MatArray> arrays;
  for (int64_t at = header_bytes; at < size;) {
    MatSource from(file, path.string(), at, size - at);
    const Tag tag = read_tag(from);
    const int64_t bytes = tag.bytes;
    from.demand(!tag.small && bytes <= size - at - 8, "an element of ", bytes, " bytes, the file has ",
                size - at - 8, " more; cut short?");
    if (tag.type == compressed) {
      InflatedMatSource inflated(file, path.string(), at + 8, bytes);
      const Tag inner = read_tag(inflated);
      arrays.push_back(read_matrix(inflated, inner, room));
      inflated.finish();
    } else {
      from.demand(bytes % 8 == 0, "an array of ", bytes, " bytes; uncompressed ones take a multiple of 8");
      arrays.push_back(read_matrix(from, tag, room));
    }
    const std::string& name = arrays.back().name;
    from.demand(std::count_if(arrays.begin(), arrays.end(), [&](auto& a) { return a.name == name; }) == 1,
                "a second array of the name ", name);
    from.demand(arrays.size() <= 64, "more than 64 arrays");
    at += 8 + bytes;
  }
  return arrays;
}

template <class T> std::vector<double> converted(const std::vector<uint8_t>& data) {
  std::vector<double> numbers(data.size() / sizeof(T));
  for (size_t i = 0; i < numbers.size(); ++i) {
    T value;
    std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
    numbers[i] = static_cast<double>(value);
  }
  return numbers;
}

}  // namespace

int64_t MatArray::elements() const {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

std::vector<double> MatArray::numbers() const {
  switch (storage) {
    case int8:
      return converted<int8_t>(data);
    case uint8:
      return converted<uint8_t>(data);
    case int16:
      return converted<int16_t>(data);
    case uint16:
      return converted<uint16_t>(data);
    case int32:
      return converted<int32_t>(data);
    case uint32:
      return converted<uint32_t>(data);
    case single_float:
      return converted<float>(data);
    case double_float:
      return converted<double>(data);
    case int64:
      return converted<int64_t>(data);
    case uint64:
      return converted<uint64_t>(data);
    default:
      fail(name, ": holds no numbers");
  }
}

std::vector<MatArray> read_mat(const fs::path& path) {
  check(is_file(path), path.string(), ": no such file");
  const auto size = static_cast<int64_t>(fs::file_size(path));
  int64_t room = size + allowance;
  std::vector<MatArray> arrays = read_arrays(path, size, room);
  if (room >= 0) return arrays;
  arrays.clear();  // the file is sound but large: read it again to keep everything
  room = std::numeric_limits<int64_t>::max();
  return read_arrays(path, size, room);
}

}  // namespace tessera
