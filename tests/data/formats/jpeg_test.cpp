#include "data/formats/jpeg.h"
#include "data/formats/image.h"

#include "tests/data/files.h"

namespace tessera {

namespace {

using Bytes = std::vector<uint8_t>;

void append(Bytes& to, const Bytes& bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

// A scan of the only component: spectral band, successive approximation, and bytes of zero bits, each of
// which is a code of the one-code tables below.
Bytes scan(uint8_t from, uint8_t to, uint8_t approximation, size_t bytes) {
  Bytes all{0xFF, 0xDA, 0, 8, 1, 1, 0, from, to, approximation};
  all.resize(all.size() + bytes, 0);
  return all;
}

// A progressive JPEG of grey pixels, value 128, with these scans, and `more` segments at its beginning.
Bytes progressive(int side, const std::vector<Bytes>& scans, const Bytes& more = {}) {
  Bytes bytes{0xFF, 0xD8};
  append(bytes, more);
  append(bytes, {0xFF, 0xDB, 0, 67, 0});
  bytes.insert(bytes.end(), 64, 1);  // quantisation table
  const auto high = static_cast<uint8_t>(side >> 8), low = static_cast<uint8_t>(side & 255);
  append(bytes, {0xFF, 0xC2, 0, 11, 8, high, low, high, low, 1, 1, 0x11, 0});
  for (const uint8_t table : Bytes{0x00, 0x10}) {  // one code, "0", for category 0 or end of block
    append(bytes, {0xFF, 0xC4, 0, 20, table, 1});
    bytes.insert(bytes.end(), 16, 0);
  }
  for (const Bytes& each : scans) append(bytes, each);
  append(bytes, {0xFF, 0xD9});
  return bytes;
}

void check_grey(const Bytes& bytes, int side) {
  const Image image = decode_image(bytes, "x.jpg");
  CHECK((image.height == side && image.width == side));
  CHECK(std::all_of(image.pixels.begin(), image.pixels.end(), [](uint8_t v) { return v == 128; }));
}

}  // namespace

TEST_CASE("jpeg: a progressive picture, small or too large to be decoded at once without a look") {
  for (const int side : {16, 4096}) {
    const size_t bytes = std::max<size_t>(1, static_cast<size_t>(side) * static_cast<size_t>(side) / 512);
    check_grey(progressive(side, {scan(0, 0, 0, bytes), scan(1, 63, 0, bytes)}), side);
  }
}

TEST_CASE("jpeg: a large baseline picture is verified row by row before it is kept") {
  constexpr int side = 4096;
  Bytes bytes = progressive(side, {scan(0, 63, 0, size_t{side} * side / 256)});
  *std::find(bytes.begin(), bytes.end(), 0xC2) = 0xC0;  // the frame's marker
  check_grey(bytes, side);
  bytes.resize(bytes.size() - 1000);
  check_refused([&] { decode_image(bytes, "cut.jpg"); }, "cut.jpg: cannot be decoded: ", ", at byte ");
}

TEST_CASE("jpeg: more scans than any encoder writes are refused") {
  std::vector<Bytes> scans{scan(0, 0, 0, 1)};
  for (uint8_t band = 1; band < 64; ++band) scans.push_back(scan(band, band, 0x01, 1));
  check_grey(progressive(16, scans), 16);
  for (uint8_t band = 1; band < 64; ++band) scans.push_back(scan(band, band, 0x10, 1));
  check_refused([&] { decode_image(progressive(16, scans), "many.jpg"); },
                "many.jpg: cannot be decoded: Invalid progressive parameters");
}

TEST_CASE("jpeg: oddities of headers are harmless") {
  const std::vector<Bytes> scans{scan(0, 0, 0, 1), scan(1, 63, 0, 1)};
  const Bytes jfif{0xFF, 0xE0, 0, 16, 'J', 'F', 'I', 'F', 0, 9, 1, 0, 0, 1, 0, 1, 0, 0};  // version 9.1
  check_grey(progressive(16, scans, jfif), 16);
  check_grey(progressive(16, scans, {0xFF, 0xFE, 0, 4, 'h', 'i', 1, 2, 3}), 16);  // bytes between segments
}

}  // namespace tessera
