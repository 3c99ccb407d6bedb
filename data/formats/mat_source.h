#pragma once

#include <zlib.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <string>

#include "engine/core/error.h"

namespace tessera {

// A sequence of bytes of a MATLAB file, read from `at` on, at most `limit`. Errors name the file and the
// offset.
class MatSource {
 public:
  MatSource(std::ifstream& file, std::string path, int64_t at, int64_t limit);
  virtual ~MatSource() = default;
  MatSource(const MatSource&) = delete;
  MatSource& operator=(const MatSource&) = delete;

  // The next `count` bytes. Fails where there are fewer.
  virtual void read(void* to, size_t count) { read_file(to, count); }
  // Where the next byte stands, for a message: "at byte 128".
  virtual std::string place() const { return "at byte " + std::to_string(at_); }

  void skip(int64_t count);
  template <class... Parts> [[noreturn]] void refuse(const Parts&... parts) const {
    fail(path_, ": ", place(), ": ", parts...);
  }
  template <class... Parts> void demand(bool holds, const Parts&... parts) const {
    if (!holds) refuse(parts...);
  }

 protected:
  static constexpr size_t piece = size_t{1} << 16;  // bytes that are read or inflated at a time

  int64_t left() const { return end_ - at_; }
  void read_file(void* to, size_t count);

 private:
  std::ifstream& file_;
  std::string path_;
  int64_t at_, end_;
};

// The content of a compressed element of `limit` bytes at offset `at`. Whatever size the content has, it
// takes 64 KB.
class InflatedMatSource : public MatSource {
 public:
  InflatedMatSource(std::ifstream& file, const std::string& path, int64_t at, int64_t limit);
  ~InflatedMatSource() override { inflateEnd(&stream_); }

  void read(void* to, size_t count) override;
  std::string place() const override;
  // Checks that stream and element end here, and the stream's checksum.
  void finish();

 private:
  void step();

  int64_t begins_, inflated_ = 0;
  z_stream stream_{};
  bool ended_ = false;
  std::array<uint8_t, piece> buffer_;
};

}  // namespace tessera
