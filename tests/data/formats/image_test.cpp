#include "data/formats/image.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "data/formats/intact.h"
#include "tests/data/files.h"
#include "tests/data/formats/grey_png.h"
#include "tests/io/full_disk.h"

namespace tessera {

namespace {

using Bytes = std::vector<uint8_t>;

// A baseline JPEG of 16 x 16 grey pixels, value 128: one component, two coefficients a block.
Bytes grey_jpeg(int height = 16, int width = 16) {
  Bytes bytes = {0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0};
  bytes.insert(bytes.end(), 64, 1);  // quantisation table
  const auto high = [](int v) { return static_cast<uint8_t>(v >> 8); };
  const auto low = [](int v) { return static_cast<uint8_t>(v & 255); };
  for (const uint8_t byte :
       Bytes{0xFF, 0xC0, 0, 11, 8, high(height), low(height), high(width), low(width), 1, 1, 0x11, 0})
    bytes.push_back(byte);  // frame
  for (const uint8_t table :
       Bytes{0x00, 0x10}) {  // Huffman tables with one code, "0", for category 0 or end of block
    bytes.insert(bytes.end(), {0xFF, 0xC4, 0, 20, table, 1});
    bytes.insert(bytes.end(), 15, 0);
    bytes.push_back(0);
  }
  bytes.insert(bytes.end(), {0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0});
  bytes.push_back(0x00);  // four blocks of "0" "0"
  bytes.insert(bytes.end(), {0xFF, 0xD9});
  return bytes;
}

Bytes bmp(int height, int width, const Bytes& pixels) {
  Bytes bytes = {'B', 'M'};
  const auto append = [&](uint32_t value, int count) {
    for (int i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i) & 255u));
  };
  append(54 + static_cast<uint32_t>(pixels.size()), 4);
  append(0, 4);
  append(54, 4);
  append(40, 4);
  append(static_cast<uint32_t>(width), 4);
  append(static_cast<uint32_t>(height), 4);
  append(1, 2);
  append(24, 2);
  for (int i = 0; i < 6; ++i) append(0, 4);
  bytes.insert(bytes.end(), pixels.begin(), pixels.end());
  return bytes;
}

Bytes png_bytes(const TemporaryFolder& folder, const Image& image) {
  write_png(folder / "x.png", image);
  const std::string text = bytes_of(folder / "x.png");
  return Bytes(text.begin(), text.end());
}

}  // namespace

TEST_CASE("image: a PNG comes back as it was written") {
  const TemporaryFolder folder;
  const Image image = random_image(7, 11, 1);
  write_png(folder / "a.png", image);
  CHECK(load_image(folder / "a.png") == image);
  check_refused([&] { write_png(folder / "none" / "a.png", image); }, "none/a.png", "cannot be written");
}

TEST_CASE("image: pixels that cannot be written are an error") {
  const TemporaryFolder folder;
  check_refused([&] { write_png(folder / "a.png", Image()); }, "a.png: no pixels to write");
  check_refused([] { encode_png(Image(3, 0)); }, "PNG: no pixels to write");
  check_refused([] { encode_png(Image(0, 3)); }, "PNG: no pixels to write");
  const FullDisk full(10);
  check_refused([&] { write_png(folder / "a.png", random_image(9, 9, 1)); }, "a.png: cannot be written");
}

TEST_CASE("image: a grey JPEG becomes RGB") {
  const Image image = decode_image(grey_jpeg(), "grey.jpg");
  CHECK(image.height == 16);
  CHECK(image.width == 16);
  CHECK(std::count(image.pixels.begin(), image.pixels.end(), 128) == 16 * 16 * 3);
}

TEST_CASE("image: a BMP is read from its last row up, blue first") {
  const Bytes rows = {1, 2, 3, 4, 5, 6, 0, 0, 11, 12, 13, 14, 15, 16, 0, 0};
  const Image image = decode_image(bmp(2, 2, rows), "a.bmp");
  CHECK(image.pixels == Bytes{13, 12, 11, 16, 15, 14, 3, 2, 1, 6, 5, 4});
}

TEST_CASE("image: what is no picture is refused by name") {
  check_refused([] { decode_image(Bytes{}, "empty.jpg"); }, "empty.jpg", "JPEG, PNG or BMP", "empty");
  check_refused(
      [] {
        decode_image(Bytes{'G', 'I', 'F', '8', '9', 'a'}, "a.png");
      },
      "a.png", "JPEG, PNG or BMP");
  const std::array<std::array<std::string, 2>, 12> foreign{
      {{"GIF", "GIF89a"},
       {"WebP", std::string("RIFF\0\0\0\0WEBPVP8 ", 16)},
       {"TIFF", std::string("II*\0\x08\0\0\0", 8)},
       {"TIFF", std::string("MM\0*\0\0\0\x08", 8)},
       {"HEIC", std::string("\0\0\0\x18"
                            "ftypheic",
                            12)},
       {"AVIF", std::string("\0\0\0\x18"
                            "ftypavif",
                            12)},
       {"HEIC", std::string("\0\0\0\x18"
                            "ftypmif1",
                            12)},
       {"AVIF", std::string("\0\0\0\x18"
                            "ftypavis",
                            12)},
       {"JPEG XL", "\xFF\x0A"},
       {"JPEG XL", std::string("\0\0\0\x0CJXL \r\n\x87\n", 12)},
       {"JPEG 2000", std::string("\0\0\0\x0CjP  \r\n", 10)},
       {"GIF", "GIF87a"}}};
  for (const auto& [name, text] : foreign)
    check_refused([&] { decode_image(Bytes(text.begin(), text.end()), "a.jpg"); }, "a.jpg",
                  "it is " + name + ": convert it");
  for (const char* text : {"RIFF\x01\x01\x01\x01WAVE", "plain text", "\xFF\xD8\xFE"})
    CHECK(error_of([&] { decode_image(Bytes(text, text + std::strlen(text)), "a"); }) ==
          "a: not a JPEG, PNG or BMP file");
  check_refused([] { load_image("nowhere/a.png"); }, "nowhere/a.png", "cannot open it: No such file");
  const TemporaryFolder folder;
  check_refused([&] { load_image(folder.path()); }, "is a folder, wanted a file");
}

TEST_CASE("image: whatever is cut off a file, it is refused and never made up") {
  const TemporaryFolder folder;
  const std::array<Bytes, 3> files = {grey_jpeg(), png_bytes(folder, random_image(9, 9, 2)),
                                      bmp(2, 2, Bytes(16, 7))};
  for (const Bytes& whole : files) {
    CHECK_NOTHROW(decode_image(whole, "whole"));
    for (size_t length = 0; length < whole.size(); ++length) {
      CAPTURE(length);
      check_refused([&] { decode_image(std::span(whole).first(length), "cut"); }, "cut: ");
    }
  }
}

TEST_CASE("image: a file is seen to be whole, or not, as by its decoder") {
  const TemporaryFolder folder;
  const std::array<Bytes, 3> files = {grey_jpeg(), png_bytes(folder, random_image(9, 9, 2)),
                                      bmp(2, 2, Bytes(16, 7))};
  for (const Bytes& whole : files) {
    CHECK_NOTHROW(check_intact(whole, "whole"));
    for (size_t length = 0; length < whole.size(); ++length) {
      CAPTURE(length);
      check_refused([&] { check_intact(std::span(whole).first(length), "cut"); }, "cut: ");
    }
  }
  Bytes longer = grey_jpeg();  // cameras write more behind the picture
  longer.insert(longer.end(), {'M', 'O', 'R', 'E'});
  CHECK_NOTHROW(check_intact(longer, "longer"));
  CHECK_NOTHROW(decode_image(longer, "longer"));
  Bytes flipped = files[1];
  flipped[flipped.size() / 2] ^= 1;
  check_refused([&] { check_intact(flipped, "flipped.png"); }, "flipped.png: ");
}

TEST_CASE("image: a damaged PNG is noticed by its checksums") {
  const TemporaryFolder folder;
  Bytes bytes = png_bytes(folder, random_image(9, 9, 3));
  for (size_t at = 8; at < bytes.size() - 4; ++at) {
    CAPTURE(at);
    bytes[at] ^= 0x10;
    check_refused([&] { decode_image(bytes, "bad.png"); }, "bad.png: ");
    bytes[at] ^= 0x10;
  }
}

TEST_CASE("image: flipped bits never crash the decoders") {
  const TemporaryFolder folder;
  const std::array<Bytes, 3> files = {grey_jpeg(), png_bytes(folder, random_image(9, 9, 4)),
                                      bmp(2, 2, Bytes(16, 7))};
  int decoded = 0, refused = 0;
  for (const Bytes& whole : files)
    for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      Bytes bytes = whole;
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
      try {
        const Image image = decode_image(bytes, "flipped");
        decoded +=
            image.pixels.size() == static_cast<size_t>(image.height) * static_cast<size_t>(image.width) * 3;
      } catch (const Error& error) {
        refused += std::string(error.what()).starts_with("flipped: ");
      }
    }
  CHECK(static_cast<size_t>(decoded + refused) == 8 * (files[0].size() + files[1].size() + files[2].size()));
}

TEST_CASE("image: an even JPEG of as few bits as its codes allow is read") {
  Bytes bytes = grey_jpeg(1024, 1024);
  bytes.resize(bytes.size() - 3);               // the four blocks and the end
  bytes.insert(bytes.end(), 2 * 16384 / 8, 0);  // two bits a block
  bytes.insert(bytes.end(), {0xFF, 0xD9});
  const Image image = decode_image(bytes, "even.jpg");
  CHECK(image.height == 1024);
  CHECK(std::all_of(image.pixels.begin(), image.pixels.end(), [](uint8_t v) { return v == 128; }));
}

TEST_CASE("image: a size that a header only claims costs no memory") {
  check_refused([] { decode_image(grey_jpeg(65000, 65000), "vast.jpg"); }, "vast.jpg", "65000 x 65000");
  check_refused([] { decode_image(grey_jpeg(2835, 8193), "thin.jpg"); }, "thin.jpg", "8193 x 2835",
                "less than a bit for 8 x 8 pixels");
  check_refused([] { decode_image(bmp(1 << 30, 1 << 30, {}), "vast.bmp"); }, "vast.bmp");
  check_refused([] { decode_image(bmp(30000, 1 << 20, {}), "vast.bmp"); }, "vast.bmp");
  check_refused([] { decode_image(png_of(100000, 100000, {}), "vast.png"); }, "vast.png", "100000 x 100000");
  check_refused([] { decode_image(png_of(1, 1, {0}, 8, 5), "odd.png"); }, "odd.png", "header is damaged");
}

TEST_CASE("image: more bytes than any picture has are refused before they are read") {
  const Bytes first = grey_jpeg();
  const std::span<const uint8_t> claimed(first.data(), size_t{max_image_file_bytes} + 1);
  for (const auto& read : {+[](std::span<const uint8_t> bytes) { decode_image(bytes, "x"); },
                           +[](std::span<const uint8_t> bytes) { image_dimensions(bytes, "x"); },
                           +[](std::span<const uint8_t> bytes) { check_intact(bytes, "x"); }})
    CHECK(error_of([&] { read(claimed); }) == "x: 268435457 bytes, more than the 268435456 that are decoded");
}

TEST_CASE("image: the segments of a JPEG are followed to its end") {
  const auto read = [](auto&& change) {
    Bytes bytes = grey_jpeg();
    change(bytes);
    return error_of([&] { check_intact(bytes, "x"); });
  };
  CHECK(read([](Bytes&) {}) == "");
  CHECK(read([](Bytes& b) { b.insert(b.begin() + 2, 3, 0xFF); }) == "");  // fill bytes
  CHECK(read([](Bytes& b) { b.resize(4), b[3] = 0xD9; }) != "");          // nothing between begin and end
  CHECK(read([](Bytes& b) { b[2] = 0; }) == "x: not a JPEG, PNG or BMP file");
  CHECK(read([](Bytes& b) { b[5] = 1; }).find("x: cannot be decoded: ") == 0);  // a length below 2
  CHECK(read([](Bytes& b) { b[4] = 255; }).find("x: cannot be decoded: ") == 0);
  CHECK(read([](Bytes& b) { b.insert(b.end() - 2, {0xFF, 0x00, 0xFF, 0xD3, 1}); }) == "");
  const auto table = [](const Bytes& bytes) {  // the first Huffman table
    constexpr std::array<uint8_t, 2> marker{0xFF, 0xC4};
    return std::search(bytes.begin(), bytes.end(), marker.begin(), marker.end()) - bytes.begin();
  };
  CHECK(read([&](Bytes& b) {
          std::fill_n(b.begin() + table(b) + 5, 16, 255);
        }).find("x: cannot be decoded") == 0);
  CHECK(read([&](Bytes& b) { b[static_cast<size_t>(table(b) + 5)] = 9; }).find("x: cannot be decoded") == 0);
}

TEST_CASE("image: a BMP with the header of OS/2, and one whose rows are not there") {
  Bytes old = {'B', 'M'};
  for (const uint32_t word : {26u + 16u, 0u, 26u, 12u})
    for (int i = 0; i < 4; ++i) old.push_back(static_cast<uint8_t>(word >> (8 * i) & 255u));
  old.insert(old.end(), {2, 0, 2, 0, 1, 0, 24, 0});
  for (const uint8_t value : Bytes{1, 2, 3, 4, 5, 6, 0, 0, 11, 12, 13, 14, 15, 16, 0, 0})
    old.push_back(value);
  CHECK(decode_image(old, "old.bmp").pixels == Bytes{13, 12, 11, 16, 15, 14, 3, 2, 1, 6, 5, 4});
  CHECK_NOTHROW(check_intact(old, "old.bmp"));
  old.pop_back();
  for (const auto& read : {+[](const Bytes& bytes) { decode_image(bytes, "cut.bmp"); },
                           +[](const Bytes& bytes) { check_intact(bytes, "cut.bmp"); }})
    check_refused([&] { read(old); }, "cut.bmp: the BMP ends before its 2 rows of 2 pixels; cut short?");
  check_refused([] { check_intact(Bytes{'B', 'M', 1}, "x.bmp"); }, "x.bmp: the header is damaged");
}

}  // namespace tessera
