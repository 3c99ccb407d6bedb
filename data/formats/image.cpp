#include "data/formats/image.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <numeric>
#include <string_view>

#include "data/formats/decoding.h"
#include "data/formats/intact.h"
#include "data/formats/jpeg.h"
#include "data/formats/png.h"
#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tessera {
// stb's encoder does not look whether it got memory.
static void* memory_or_throw(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
}  // namespace tessera

// Zeroed memory, because a damaged file can make stb_image read a table that the file does not define.
#define STBI_MALLOC(bytes) std::calloc(1, bytes)
#define STBI_REALLOC(block, bytes) std::realloc(block, bytes)
#define STBI_FREE(block) std::free(block)
#define STBIW_MALLOC(bytes) tessera::memory_or_throw(std::malloc(bytes))
#define STBIW_REALLOC(block, bytes) tessera::memory_or_throw(std::realloc(block, bytes))
#define STBIW_FREE(block) std::free(block)
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_WRITE_NO_STDIO
#define STB_IMAGE_STATIC
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>

namespace tessera {

namespace {

using Bytes = std::span<const uint8_t>;

enum class Format { jpeg, png, bmp };

// Names a format that is known but not read, whatever the file is called; empty for other files.
std::string foreign_format(Bytes bytes) {
  const auto has = [&](size_t at, std::string_view magic) {
    return bytes.size() >= at + magic.size() &&
           std::equal(magic.begin(), magic.end(), bytes.begin() + static_cast<int64_t>(at),
                      [](char wanted, uint8_t byte) { return static_cast<uint8_t>(wanted) == byte; });
  };
  using namespace std::string_view_literals;
  const char* name = has(0, "RIFF") && has(8, "WEBP")               ? "WebP"
                     : has(0, "II*\0"sv) || has(0, "MM\0*"sv)       ? "TIFF"
                     : has(0, "GIF8")                               ? "GIF"
                     : has(4, "ftypavif") || has(4, "ftypavis")     ? "AVIF"
                     : has(4, "ftyphei") || has(4, "ftypmif1")      ? "HEIC"
                     : has(0, "\xFF\x0A") || has(4, "JXL \r\n\x87") ? "JPEG XL"
                     : has(0, "\0\0\0\x0CjP  "sv)                   ? "JPEG 2000"
                                                                    : "";
  return *name == 0 ? "" : std::string("it is ") + name + ": convert it, as with mogrify -format png";
}

Format format_of(Bytes bytes, const std::string& path) {
  const auto starts_with = [&](std::initializer_list<uint8_t> magic) {
    return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
  };
  if (starts_with({0xFF, 0xD8, 0xFF})) return Format::jpeg;
  if (starts_with({0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'})) return Format::png;
  if (starts_with({'B', 'M'})) return Format::bmp;
  const std::string other = bytes.empty() ? "it is empty" : foreign_format(bytes);
  fail(path, ": not a JPEG, PNG or BMP file", other.empty() ? "" : " (" + other + ")");
}

uint32_t little_endian(Bytes bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint32_t{bytes[at + i]} << (8 * i);
  return value;
}

// Whether no table of a DHT segment has more than 256 codes, for which stb_image has room.
bool huffman_tables_fit(Bytes segment) {
  while (segment.size() >= 17) {
    const auto counts = segment.subspan(1, 16);
    const size_t codes = std::accumulate(counts.begin(), counts.end(), size_t{0});
    if (codes > 256 || codes > segment.size() - 17) return false;
    segment = segment.subspan(17 + codes);
  }
  return segment.empty();
}

// The end of the entropy-coded data that begins at `at`: an FF that is followed neither by 00 (an escaped FF)
// nor by the number of a restart marker.
size_t scan_end(Bytes bytes, size_t at) {
  constexpr uint8_t restart = 0xD0;
  const auto in_scan = [](uint8_t next) { return next == 0 || (next >= restart && next < restart + 8); };
  while (at + 1 < bytes.size() && (bytes[at] != 0xFF || in_scan(bytes[at + 1]))) ++at;
  return at;
}

// Whether a JPEG's segments lead to the end marker; if not, `at` is the offset where they break off. Needed
// because stb_image fills missing parts with grey.
bool jpeg_intact(Bytes bytes, size_t& at) {
  constexpr uint8_t tables = 0xC4, end_of_image = 0xD9, scan = 0xDA, fill = 0xFF;
  for (at = 2; at + 4 <= bytes.size();) {
    const uint8_t marker = bytes[at + 1];
    if (bytes[at] != 0xFF) return false;
    if (marker == end_of_image) return true;
    if (marker == fill) {
      ++at;
      continue;
    }
    const size_t length = size_t{bytes[at + 2]} << 8 | bytes[at + 3];
    if (length < 2 || length > bytes.size() - at - 2) return false;
    if (marker == tables && !huffman_tables_fit(bytes.subspan(at + 4, length - 2))) return false;
    at += 2 + length;
    if (marker == scan) at = scan_end(bytes, at);
    if (at + 2 == bytes.size()) return bytes[at] == 0xFF && bytes[at + 1] == end_of_image;
  }
  return false;
}

// Fails unless a BMP has all its rows. Needed because stb_image fills missing ones with black.
void check_bmp(Bytes bytes, int height, int width, const std::string& path) {
  const auto check_rows = [&](bool complete) {
    check(complete, path, ": the BMP ends before its ", height, " rows of ", width, " pixels; cut short?");
  };
  check_rows(bytes.size() >= 30);
  const bool old_header = little_endian(bytes, 14, 4) == 12;
  const int64_t data = little_endian(bytes, 10, 4), bits = little_endian(bytes, old_header ? 24 : 28, 2);
  const int64_t row_bytes = (width * bits + 31) / 32 * 4;
  check_rows(data + row_bytes * height <= static_cast<int64_t>(bytes.size()));
}

void check_file_size(Bytes bytes, const std::string& path) {
  check(static_cast<int64_t>(bytes.size()) <= max_image_file_bytes, path, ": ", bytes.size(),
        " bytes, more than the ", max_image_file_bytes, " that are decoded");
}

std::array<int, 2> header_dimensions(Bytes bytes, const std::string& path) {
  int width = 0, height = 0, components = 0;
  const int length = static_cast<int>(bytes.size());
  check(stbi_info_from_memory(bytes.data(), length, &width, &height, &components) != 0, path,
        ": the header is damaged, or of a form that is not decoded");
  return {height, width};
}

// Upper bound of memory a pixel while stb_image decodes: inflated, unfiltered, and as RGB, 16 bits a channel.
constexpr int64_t png_pixel_bytes = 24;

Image decode_stb(Bytes bytes, Format format, const std::string& path) {
  const int length = static_cast<int>(bytes.size());
  size_t at = 0;
  check(format != Format::jpeg || jpeg_intact(bytes, at), path,
        ": a part of the JPEG is damaged or missing, at byte ", at, " of ", bytes.size(), "; cut short?");
  if (format == Format::png) check_png(bytes, path);
  auto [height, width] = header_dimensions(bytes, path);
  check_dimensions(height, width, path);
  if (format == Format::bmp) check_bmp(bytes, height, width, path);
  if (format == Format::jpeg) check_jpeg_density(bytes, height, width, path);
  if (format == Format::png && must_verify_first(bytes, height, width, png_pixel_bytes))
    check_png_pixels(bytes, path);
  int components = 0;
  const std::unique_ptr<stbi_uc, decltype(&stbi_image_free)> pixels(
      stbi_load_from_memory(bytes.data(), length, &width, &height, &components, 3), &stbi_image_free);
  check(pixels != nullptr, path, ": cannot be decoded: ", stbi_failure_reason());
  Image image(height, width);
  std::copy_n(pixels.get(), image.pixels.size(), image.pixels.begin());
  return image;
}

}  // namespace

void Image::resize(int h, int w) {
  height = h;
  width = w;
  pixels.resize(static_cast<size_t>(height) * static_cast<size_t>(width) * 3);
}

void check_dimensions(int64_t height, int64_t width, const std::string& path) {
  check(height > 0 && width > 0, path, ": an image of ", width, " x ", height, " pixels");
  check(height <= max_image_pixels / width, path, ": ", width, " x ", height, " pixels, more than the ",
        max_image_pixels, " that are decoded");
}

void check_jpeg_density(Bytes bytes, int64_t height, int64_t width, const std::string& path) {
  constexpr int64_t block = 8;
  const int64_t blocks = (height + block - 1) / block * ((width + block - 1) / block);
  check(blocks / 8 <= static_cast<int64_t>(bytes.size()), path, ": a JPEG of ", width, " x ", height,
        " pixels in ", bytes.size(), " bytes, less than a bit for 8 x 8 pixels; cut short?");
}

Image decode_image(Bytes bytes, const std::string& path) {
  check_file_size(bytes, path);
  const Format format = format_of(bytes, path);
#ifdef TESSERA_JPEG
  if (Image image; format == Format::jpeg && decode_jpeg(bytes, path, image)) return image;
#endif
  return decode_stb(bytes, format, path);
}

std::array<int, 2> image_dimensions(Bytes bytes, const std::string& path) {
  format_of(bytes, path);
  check_file_size(bytes, path);
  return header_dimensions(bytes, path);
}

void check_intact(Bytes bytes, const std::string& path) {
  check_file_size(bytes, path);
  size_t at = 0;
  switch (format_of(bytes, path)) {
    case Format::jpeg:
      if (!jpeg_intact(bytes, at)) decode_image(bytes, path);  // libjpeg knows what of it is harmless
      return;
    case Format::png:
      return check_png(bytes, path);
    case Format::bmp:
      const auto [height, width] = header_dimensions(bytes, path);
      check_dimensions(height, width, path);
      check_bmp(bytes, height, width, path);
  }
}

Image load_image(const std::filesystem::path& path) {
  return decode_image(read_bytes(path, max_image_file_bytes), path.string());
}

std::vector<uint8_t> encode_png(const Image& image) {
  std::vector<uint8_t> bytes;
  const auto append = [](void* to, void* from, int count) {
    const auto* first = static_cast<const uint8_t*>(from);
    static_cast<std::vector<uint8_t>*>(to)->insert(static_cast<std::vector<uint8_t>*>(to)->end(), first,
                                                   first + count);
  };
  check(image.height > 0 && image.width > 0, "PNG: no pixels to write");
  stbi_write_png_to_func(append, &bytes, image.width, image.height, 3, image.pixels.data(), image.width * 3);
  return bytes;
}

void write_png(const std::filesystem::path& path, const Image& image) {
  check(image.height > 0 && image.width > 0, path.string(), ": no pixels to write");
  const std::vector<uint8_t> bytes = encode_png(image);
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  check(!out.fail(), path.string(), ": cannot be written");
}

}  // namespace tessera
