#include "data/formats/mat.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <optional>

#include "data/sets/folder.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

enum Type : uint32_t { int8 = 1, int32 = 5, uint32 = 6, matrix = 14, compressed = 15 };

constexpr int64_t header_bytes = 128, most_bytes = int64_t{1} << 31;
constexpr size_t piece = size_t{1} << 16;

// Bytes an element of a storage type; 0 for those that hold no numbers.
int64_t size_of_type(uint32_t type) {
  constexpr std::array<int64_t, 14> sizes{0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8};
  return type < sizes.size() ? sizes[type] : 0;
}

// Where bytes come from, one after another, and how far they go. Errors tell the place.
class Source {
 public:
  Source(std::ifstream& file, std::string path, int64_t at, int64_t limit)
      : file_(file), path_(std::move(path)), at_(at), end_(at + limit) {}
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  virtual void read(void* to, size_t count) { read_file(to, count); }
  virtual std::string place() const { return "at byte " + std::to_string(at_); }

  void skip(int64_t count) {
    std::array<uint8_t, piece> bytes;
    for (; count > 0; count -= static_cast<int64_t>(piece))
      read(bytes.data(), std::min(piece, static_cast<size_t>(count)));
  }
  template <class... Parts> [[noreturn]] void refuse(const Parts&... parts) const {
    fail(path_, ": ", place(), ": ", parts...);
  }
  template <class... Parts> void demand(bool holds, const Parts&... parts) const {
    if (!holds) refuse(parts...);
  }

 protected:
  int64_t left() const { return end_ - at_; }
  void read_file(void* to, size_t count) {
    if (static_cast<int64_t>(count) > left())
      fail(path_, ": at byte ", at_, ": ends here, ", count, " more bytes were expected");
    file_.read(static_cast<char*>(to), static_cast<std::streamsize>(count));
    check(file_.gcount() == static_cast<std::streamsize>(count), path_, ": at byte ", at_,
          ": cannot be read");
    at_ += static_cast<int64_t>(count);
  }

 private:
  std::ifstream& file_;
  std::string path_;
  int64_t at_, end_;
};

// What the compressed element of `limit` bytes that begins at `at` inflates to.
class Inflated : public Source {
 public:
  Inflated(std::ifstream& file, const std::string& path, int64_t at, int64_t limit)
      : Source(file, path, at, limit), begins_(at) {
    demand(inflateInit(&stream_) == Z_OK, "zlib cannot start");
  }
  ~Inflated() override { inflateEnd(&stream_); }

  void read(void* to, size_t count) override {
    stream_.next_out = static_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(count);
    while (stream_.avail_out > 0) {
      demand(!ended_, "the compressed data ends here, ", stream_.avail_out, " more bytes were expected");
      step();
    }
    inflated_ += static_cast<int64_t>(count);
  }

  // The end of the stream, with its checksum, and of the element.
  void finish() {
    uint8_t extra = 0;
    stream_.next_out = &extra;
    stream_.avail_out = 1;
    while (!ended_ && stream_.avail_out > 0) step();
    demand(stream_.avail_out == 1, "the compressed data goes on after its array");
    demand(left() == 0 && stream_.avail_in == 0, left() + stream_.avail_in,
           " bytes follow the end of the compressed data");
  }

  std::string place() const override {
    return "byte " + std::to_string(inflated_) + " of what the compressed data at byte " +
           std::to_string(begins_) + " holds";
  }

 private:
  void step() {
    if (stream_.avail_in == 0 && left() > 0) {
      const size_t count = std::min(piece, static_cast<size_t>(left()));
      read_file(buffer_.data(), count);
      stream_.next_in = buffer_.data();
      stream_.avail_in = static_cast<uInt>(count);
    }
    const bool starved = stream_.avail_in == 0;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    ended_ = code == Z_STREAM_END;
    demand(code == Z_OK || ended_ || (code == Z_BUF_ERROR && !starved),
           starved ? "the compressed data is cut short" : "the compressed data is damaged");
  }

  int64_t begins_, inflated_ = 0;
  z_stream stream_{};
  bool ended_ = false;
  std::array<uint8_t, piece> buffer_;
};

struct Tag {
  uint32_t type, bytes;
  std::optional<std::array<uint8_t, 4>> small;  // the data of a small element, which lies in its tag
};

Tag read_tag(Source& from) {
  std::array<uint32_t, 2> words;
  from.read(words.data(), 8);
  if (words[0] >> 16 == 0) return {words[0], words[1], std::nullopt};
  const uint32_t bytes = words[0] >> 16;
  from.demand(bytes <= 4, "a small element of ", bytes, " bytes; they hold 1 to 4");
  return {words[0] & 0xFFFFu, bytes, std::bit_cast<std::array<uint8_t, 4>>(words[1])};
}

int64_t padded(int64_t bytes) { return (bytes + 7) / 8 * 8; }

// The data of a short element, past its padding; `budget` is what its matrix has left.
std::vector<uint8_t> read_short(Source& from, const Tag& tag, size_t most, int64_t& budget,
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

void read_flags(Source& from, int64_t& budget, MatVariable& variable) {
  const Tag tag = read_tag(from);
  from.demand(tag.type == uint32 && tag.bytes == 8 && !tag.small,
              "an array begins with its flags, here is an element of type ", tag.type, " and ", tag.bytes,
              " bytes");
  const std::vector<uint8_t> flags = read_short(from, tag, 8, budget, "flags");
  variable.array_class = flags[0];
  from.demand(variable.array_class >= 6 && variable.array_class <= 15, "an array of class ",
              variable.array_class, "; numbers (6 to 15) are read");
  from.demand((flags[1] & 0x08u) == 0, "an array of complex numbers; real ones are read");
}

void read_sizes(Source& from, int64_t& budget, MatVariable& variable) {
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
    variable.sizes.push_back(size);
  }
}

void read_name(Source& from, int64_t& budget, MatVariable& variable) {
  const Tag tag = read_tag(from);
  from.demand(tag.type == int8, "the name of an array has type ", tag.type, ", not int8 (1)");
  const std::vector<uint8_t> bytes = read_short(from, tag, 63, budget, "name");
  const auto in_names = [](uint8_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  from.demand(std::all_of(bytes.begin(), bytes.end(), in_names), "an array whose name has other characters ",
              "than letters, digits and _");
  variable.name.assign(bytes.begin(), bytes.end());
}

void read_values(Source& from, int64_t& budget, const MatVariable& variable) {
  const Tag tag = read_tag(from);
  const int64_t each = size_of_type(tag.type), wanted = variable.elements() * each;
  budget -= 8;
  from.demand(each > 0, "the values of ", variable.name, " have type ", tag.type, ", which holds no numbers");
  from.demand(tag.bytes == wanted, variable.name, " has ", variable.elements(), " values of ", each,
              " bytes, its data ", tag.bytes, " bytes");
  if (!tag.small) {
    budget -= tag.bytes;
    from.demand(budget >= 0, "the values of ", variable.name, " go past the end of the array");
    from.skip(tag.bytes);
  }
  from.demand(budget < 8, budget, " bytes of ", variable.name, " belong to nothing");
  from.skip(budget);
}

MatVariable read_matrix(Source& from, const Tag& tag) {
  from.demand(tag.type == matrix && !tag.small, "an element of type ", tag.type, "; arrays (14) are read");
  int64_t budget = tag.bytes;
  MatVariable variable;
  read_flags(from, budget, variable);
  read_sizes(from, budget, variable);
  read_name(from, budget, variable);
  read_values(from, budget, variable);
  return variable;
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

}  // namespace

int64_t MatVariable::elements() const {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

std::vector<MatVariable> list_mat(const fs::path& path) {
  check(is_file(path), path.string(), ": no such file");
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  check(file.is_open(), path.string(), ": cannot be opened");
  const int64_t size = file.tellg();
  file.seekg(0);
  check_header(file, path.string(), size);
  std::vector<MatVariable> variables;
  for (int64_t at = header_bytes; at < size;) {
    Source from(file, path.string(), at, size - at);
    const Tag tag = read_tag(from);
    const int64_t bytes = tag.bytes;
    from.demand(!tag.small && bytes <= size - at - 8, "an element of ", bytes, " bytes, the file has ",
                size - at - 8, " more; cut short?");
    if (tag.type == compressed) {
      Inflated inflated(file, path.string(), at + 8, bytes);
      variables.push_back(read_matrix(inflated, read_tag(inflated)));
      inflated.finish();
    } else {
      from.demand(bytes % 8 == 0, "an array of ", bytes, " bytes; all but compressed ones fill 8s");
      variables.push_back(read_matrix(from, tag));
    }
    const std::string& name = variables.back().name;
    from.demand(
        std::count_if(variables.begin(), variables.end(), [&](auto& v) { return v.name == name; }) == 1,
        "a second array of the name ", name);
    from.demand(variables.size() <= 64, "more than 64 arrays");
    at += 8 + bytes;
  }
  return variables;
}

}  // namespace tessera
