#pragma once

// Builds MATLAB level-5 files from pieces, each of which can be made wrong.

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tessera::mat_files {

inline std::string word(uint32_t value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return bytes;
}

inline std::string header() {
  std::string text = "MATLAB 5.0 MAT-file, made by a test";
  text.resize(124, ' ');
  return text + std::string("\x00\x01IM", 4);
}

// A tag, the data, and zeros up to a multiple of 8.
inline std::string element(uint32_t type, const std::string& data) {
  return word(type) + word(static_cast<uint32_t>(data.size())) + data +
         std::string((8 - data.size() % 8) % 8, '\0');
}

// An element of up to 4 bytes, which are stored in the tag.
inline std::string small_element(uint32_t type, std::string data) {
  const auto size = static_cast<uint32_t>(data.size());
  data.resize(4, '\0');
  return word(size << 16 | type) + data;
}

struct Array {
  std::string name;
  uint32_t array_class;  // 9: uint8, 6: double
  std::vector<int32_t> sizes;
  uint32_t storage;  // 2: uint8, 9: double
  std::string data;

  std::string bytes() const {
    std::string dims;
    for (const int32_t size : sizes) dims += word(static_cast<uint32_t>(size));
    return element(14, element(6, word(array_class) + word(0)) + element(5, dims) +
                           (name.size() <= 4 ? small_element(1, name) : element(1, name)) +
                           (data.size() <= 4 ? small_element(storage, data) : element(storage, data)));
  }
};

inline std::string deflated(const std::string& plain) {
  uLongf size = compressBound(static_cast<uLong>(plain.size()));
  std::string bytes(size, '\0');
  compress(reinterpret_cast<Bytef*>(bytes.data()), &size, reinterpret_cast<const Bytef*>(plain.data()),
           static_cast<uLong>(plain.size()));
  bytes.resize(size);
  return bytes;
}

// A compressed element, which has no padding.
inline std::string compressed(const std::string& element_bytes) {
  const std::string data = deflated(element_bytes);
  return word(15) + word(static_cast<uint32_t>(data.size())) + data;
}

// A value that tells a pixel's place.
inline uint8_t pixel(int row, int column, int channel, int image) {
  return static_cast<uint8_t>(7 * row + 3 * column + 50 * channel + 11 * image);
}

// SVHN's X with `count` images, whose bytes are pixel(row, column, channel, image).
inline Array images(int32_t count) {
  std::string data;
  for (int32_t n = 0; n < count; ++n)
    for (int channel = 0; channel < 3; ++channel)
      for (int column = 0; column < 32; ++column)
        for (int row = 0; row < 32; ++row) data += static_cast<char>(pixel(row, column, channel, n));
  return {"X", 9, {32, 32, 3, count}, 2, data};
}

// y of class double, stored as bytes, as the format allows.
inline Array labels(const std::string& bytes) {
  return {"y", 6, {static_cast<int32_t>(bytes.size()), 1}, 2, bytes};
}

}  // namespace tessera::mat_files
