#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace tessera {

/// An 8-bit RGB image, row by row. [height, width, 3]
struct Image {
  int height = 0, width = 0;
  std::vector<uint8_t> pixels;

  Image() = default;
  Image(int h, int w) { resize(h, w); }
  /// Changes the size; the pixels are undefined then. Memory that is large enough is reused.
  void resize(int h, int w);
  uint8_t* at(int y, int x) { return pixels.data() + (int64_t{y} * width + x) * 3; }
  const uint8_t* at(int y, int x) const { return pixels.data() + (int64_t{y} * width + x) * 3; }
  bool operator==(const Image&) const = default;
};

/// Larger images and files are refused before anything is decoded, so that memory stays bounded.
inline constexpr int64_t max_image_pixels = int64_t{1} << 26;
inline constexpr int64_t max_image_file_bytes = int64_t{1} << 28;

/// Decodes the bytes of a JPEG, PNG or BMP file; grey becomes RGB, transparency is dropped. Fails for any
/// other format, for a file that is cut short or damaged, and beyond the limits; the message begins with
/// `path`.
Image decode_image(std::span<const uint8_t> bytes, const std::string& path);
Image load_image(const std::filesystem::path& path);

/// {height, width} from the header of such a file. Fails if it cannot be read.
std::array<int, 2> image_dimensions(std::span<const uint8_t> bytes, const std::string& path);

/// Fails, with a message that begins with `path`, unless an image of this size is within the limits.
void check_dimensions(int64_t height, int64_t width, const std::string& path);

/// Encodes an image as a PNG file. Fails for an image without pixels.
std::vector<uint8_t> encode_png(const Image& image);
void write_png(const std::filesystem::path& path, const Image& image);

}  // namespace tessera
