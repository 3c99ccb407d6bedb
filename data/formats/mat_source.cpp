#include "data/formats/mat_source.h"

#include <algorithm>
#include <utility>

namespace tessera {

MatSource::MatSource(std::ifstream& file, std::string path, int64_t at, int64_t limit)
    : file_(file), path_(std::move(path)), at_(at), end_(at + limit) {}

void MatSource::skip(int64_t count) {
  std::array<uint8_t, piece> bytes;
  for (; count > 0; count -= static_cast<int64_t>(piece))
    read(bytes.data(), std::min(piece, static_cast<size_t>(count)));
}

void MatSource::read_file(void* to, size_t count) {
  if (static_cast<int64_t>(count) > left())
    fail(path_, ": at byte ", at_, ": ends here, ", count, " more bytes were expected");
  file_.read(static_cast<char*>(to), static_cast<std::streamsize>(count));
  check(file_.gcount() == static_cast<std::streamsize>(count), path_, ": at byte ", at_, ": cannot be read");
  at_ += static_cast<int64_t>(count);
}

InflatedMatSource::InflatedMatSource(std::ifstream& file, const std::string& path, int64_t at, int64_t limit)
    : MatSource(file, path, at, limit), begins_(at) {
  demand(inflateInit(&stream_) == Z_OK, "zlib cannot start");
}

void InflatedMatSource::read(void* to, size_t count) {
  stream_.next_out = static_cast<Bytef*>(to);
  stream_.avail_out = static_cast<uInt>(count);
  while (stream_.avail_out > 0) {
    demand(!ended_, "the compressed data ends here, ", stream_.avail_out, " more bytes were expected");
    step();
  }
  inflated_ += static_cast<int64_t>(count);
}

void InflatedMatSource::finish() {
  uint8_t extra = 0;
  stream_.next_out = &extra;
  stream_.avail_out = 1;
  while (!ended_ && stream_.avail_out > 0) step();
  demand(stream_.avail_out == 1, "the compressed data goes on after its array");
  demand(left() == 0 && stream_.avail_in == 0, left() + stream_.avail_in,
         " bytes follow the end of the compressed data");
}

std::string InflatedMatSource::place() const {
  return "byte " + std::to_string(inflated_) + " of what the compressed data at byte " +
         std::to_string(begins_) + " holds";
}

void InflatedMatSource::step() {
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

}  // namespace tessera
