#include "data/formats/png.h"

#include <zlib.h>

#include <vector>

#include "data/formats/image.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace tessera {

namespace {

uint32_t big_endian(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

// The chunks with their right checksums, so that what a fuzzer changes in them gets past the first look.
std::vector<uint8_t> with_right_sums(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  for (size_t at = 8; at + 12 <= size;) {
    const size_t length = big_endian(&bytes[at]);
    if (length > size - at - 12) break;
    const uLong sum = crc32(0, &bytes[at + 4], static_cast<uInt>(length + 4));
    for (size_t i = 0; i < 4; ++i) bytes[at + 8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += 12 + length;
  }
  return bytes;
}

}  // namespace

}  // namespace tessera

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  fuzz::may_refuse("input.png", [&] { decode_image({data, size}, "input.png"); });
  const std::vector<uint8_t> bytes = with_right_sums(data, size);
  fuzz::may_refuse("input.png", [&] { decode_image(bytes, "input.png"); });
  fuzz::may_refuse("input.png", [&] {
    check_png(bytes, "input.png");
    check_png_pixels(bytes, "input.png");
  });
  return 0;
}
