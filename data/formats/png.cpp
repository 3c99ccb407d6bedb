#include "data/formats/png.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "data/formats/image.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

using Bytes = std::span<const uint8_t>;

constexpr size_t signature = 8, around_data = 12;  // a chunk: length, type, data, checksum
constexpr uint8_t last_filter = 4;

uint32_t big_endian(Bytes bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}

// Calls f(type, data, offset) for each chunk until the end chunk or until f returns false. Returns whether it
// reached the end chunk; if not, `at` is the offset where the chunks break off.
template <class F> bool walk_chunks(Bytes bytes, size_t& at, F&& f) {
  for (at = signature; at + around_data <= bytes.size();) {
    const uint32_t length = big_endian(bytes, at);
    if (length > bytes.size() - at - around_data) return false;
    const std::string_view type(reinterpret_cast<const char*>(bytes.data()) + at + 4, 4);
    if (!f(type, bytes.subspan(at + 8, length), at)) return false;
    if (type == "IEND") return true;
    at += around_data + length;
  }
  return false;
}

struct Rows {
  int64_t count, bytes;  // bytes of a row with its filter byte
};

// The rows in which the pixels are stored: those of the image, or of the seven passes of Adam7.
std::vector<Rows> rows_of(Bytes header) {
  constexpr std::array<int, 7> channels{1, 0, 3, 1, 2, 0, 4};  // by colour type
  const int64_t width = big_endian(header, 0), height = big_endian(header, 4);
  const int64_t bits = int64_t{header[8]} * channels[std::min<size_t>(header[9], 6)];
  const auto rows = [&](int64_t x, int64_t y, int64_t dx, int64_t dy) {
    const int64_t columns = (width - x + dx - 1) / dx;
    return Rows{columns > 0 ? std::max<int64_t>(0, (height - y + dy - 1) / dy) : 0,
                1 + (columns * bits + 7) / 8};
  };
  if (header[12] == 0) return {rows(0, 0, 1, 1)};
  return {rows(0, 0, 8, 8), rows(4, 0, 8, 8), rows(0, 4, 4, 8), rows(2, 0, 4, 4),
          rows(0, 2, 2, 4), rows(1, 0, 2, 2), rows(0, 1, 1, 2)};
}

// Follows the inflated bytes through the rows.
class RowWalk {
 public:
  explicit RowWalk(std::vector<Rows> rows) : rows_(std::move(rows)) { skip_empty(); }

  bool finished() const { return part_ == rows_.size(); }
  int64_t row() const { return row_; }  // for messages

  // Consumes the next bytes. Returns whether the filters among them exist.
  bool take(Bytes bytes) {
    while (!bytes.empty() && !finished()) {
      if (in_row_ == 0 && bytes[0] > last_filter) return false;
      const int64_t taken = std::min(rows_[part_].bytes - in_row_, std::ssize(bytes));
      bytes = bytes.subspan(static_cast<size_t>(taken));
      in_row_ += taken;
      if (in_row_ == rows_[part_].bytes) {
        in_row_ = 0;
        ++row_;
        --rows_[part_].count;
        skip_empty();
      }
    }
    return true;
  }

 private:
  void skip_empty() {
    while (part_ < rows_.size() && rows_[part_].count <= 0) ++part_;
  }

  std::vector<Rows> rows_;
  size_t part_ = 0;
  int64_t in_row_ = 0, row_ = 0;
};

class Inflater {
 public:
  Inflater() { check(inflateInit(&stream_) == Z_OK, "png: zlib cannot start"); }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Inflates `data`. Returns false if it is damaged or a filter does not exist.
  bool feed(Bytes data, RowWalk& walk) {
    stream_.next_in = const_cast<Bytef*>(data.data());
    stream_.avail_in = static_cast<uInt>(data.size());
    while (!ended_ && !walk.finished()) {
      stream_.next_out = out_.data();
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      const size_t got = out_.size() - stream_.avail_out;
      if (!walk.take(Bytes(out_).first(got))) return false;
      ended_ = code == Z_STREAM_END;
      if (code == Z_BUF_ERROR || (code == Z_OK && got < out_.size() && stream_.avail_in == 0)) return true;
      if (code != Z_OK && !ended_) return false;
    }
    return true;
  }

 private:
  z_stream stream_{};
  bool ended_ = false;
  std::array<uint8_t, 1 << 16> out_;
};

}  // namespace

void check_png(Bytes bytes, const std::string& path) {
  size_t at = signature;
  const bool whole = walk_chunks(bytes, at, [&](std::string_view type, Bytes data, size_t begin) {
    const auto sum = crc32(0, bytes.data() + begin + 4, static_cast<uInt>(data.size()) + 4);
    if (sum != big_endian(bytes, begin + 8 + data.size())) return false;
    if (type == "IHDR" && data.size() >= 8) check_dimensions(big_endian(data, 4), big_endian(data, 0), path);
    return true;
  });
  check(whole, path, ": a part of the PNG is damaged or missing, at byte ", std::min(at, bytes.size()),
        " of ", bytes.size(), "; cut short?");
}

void check_png_pixels(Bytes bytes, const std::string& path) {
  check(bytes.size() >= 33 && big_endian(bytes, signature) == 13, path, ": at byte 8: no PNG header");
  RowWalk walk(rows_of(bytes.subspan(signature + 8, 13)));
  const auto inflater = std::make_unique<Inflater>();
  size_t at = signature;
  const bool sound = walk_chunks(bytes, at, [&](std::string_view type, Bytes data, size_t) {
    return type != "IDAT" || inflater->feed(data, walk);
  });
  check(sound, path, ": the PNG's pixels are damaged in the chunk at byte ", at, ", row ", walk.row());
  check(walk.finished(), path, ": the PNG's pixels end after row ", walk.row(), "; cut short?");
}

}  // namespace tessera
