#include "apps/inspector/container.h"

#include <zlib.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/core/error.h"

namespace tessera {

namespace {

// zlib's raw deflate, which browsers call "deflate-raw".
std::string deflated(std::span<const uint8_t> bytes, int strategy) {
  z_stream stream{};
  check(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 9, strategy) == Z_OK,
        "page: zlib has no memory");
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int state = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  check(state == Z_STREAM_END, "page: zlib failed with ", state);
  return packed;
}

// Random bytes have no repetitions, and what looks like one costs more than it saves; the search for them is
// what takes the time.
std::string deflated(std::span<const uint8_t> bytes) {
  std::string plain = deflated(bytes, Z_HUFFMAN_ONLY);
  if (4 * plain.size() > 3 * bytes.size()) return plain;
  std::string usual = deflated(bytes, Z_DEFAULT_STRATEGY);
  return plain.size() < usual.size() ? plain : usual;
}

std::vector<uint8_t> in_planes(std::span<const uint8_t> bytes, size_t planes) {
  const size_t count = bytes.size() / planes;
  std::vector<uint8_t> sorted(bytes.size());
  for (size_t plane = 0; plane < planes; ++plane)
    for (size_t i = 0; i < count; ++i) sorted[plane * count + i] = bytes[i * planes + plane];
  return sorted;
}

std::vector<uint8_t> in_float_planes(std::span<const uint8_t> bytes) {
  const size_t count = bytes.size() / 4;
  std::vector<uint8_t> sorted(bytes.size());
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, bytes.data() + 4 * i, 4);
    const uint32_t rest = (bits & 0x7fffffu) | (bits >> 31) << 23;
    const std::array<uint32_t, 4> planes{bits >> 23, rest >> 16, rest >> 8, rest};
    for (size_t plane = 0; plane < 4; ++plane)
      sorted[plane * count + i] = static_cast<uint8_t>(planes[plane] & 0xffu);
  }
  return sorted;
}

std::span<const uint8_t> bytes_of(const Tensor& x) {
  return {static_cast<const uint8_t*>(x.raw()), x.bytes()};
}

uint32_t checksum(std::span<const uint8_t> bytes) {
  return static_cast<uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
}

void append_number(std::string& block, uint64_t number) {
  for (; number >= 128; number >>= 7) block += static_cast<char>((number & 127u) | 128u);
  block += static_cast<char>(number);
}

template <class T> void append_raw(std::string& block, T value) {
  std::array<char, sizeof value> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  block.append(bytes.data(), bytes.size());
}

std::string rounding_block(const Rounding& rounding) {
  std::string block;
  append_raw(block, rounding.zero);
  append_number(block, rounding.close.size());
  uint64_t last = 0;
  for (const auto& [cell, odd] : rounding.close) {
    append_number(block, 2 * (cell - std::exchange(last, cell)) + (odd ? 1 : 0));
  }
  append_number(block, rounding.small.size());
  last = 0;
  for (const Rounding::Small& small : rounding.small)
    append_number(block, small.cell - std::exchange(last, small.cell));
  for (const Rounding::Small& small : rounding.small) append_raw(block, small.value);
  return block;
}

}  // namespace

Json Container::add(const Tensor& x) {
  const Tensor here = x.to(Device::cpu);
  const std::span<const uint8_t> bytes = bytes_of(here);
  const uint32_t sum = checksum(bytes);
  Json& block = known_[{sum, bytes.size()}];
  if (!block.is_null()) return block;
  const bool floats = here.dtype() == DType::f32;
  return block =
             append(floats ? "floats" : "planes",
                    deflated(floats ? in_float_planes(bytes) : in_planes(bytes, size_of(here.dtype()))), sum);
}

Json Container::add(std::span<const uint8_t> bytes) {
  return append("bytes", deflated(bytes), checksum(bytes));
}

Json Container::add_computed(const Tensor& x, const Rounding& rounding) {
  return append("computed", rounding_block(rounding), checksum(bytes_of(x)));
}

Json Container::append(const char* code, const std::string& block, uint32_t sum) {
  const size_t at = data_.size();
  data_ += block;
  return Json::array({code, at, block.size(), sum});
}

std::string Container::text() const { return in_html(data_); }

std::string in_html(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 64);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    const char next = i + 1 < bytes.size() ? bytes[i + 1] : '/';  // the closing tag follows the last byte
    const bool tag = c == '<' && (next == '/' || next == '!');
    if (c == '\0' || c == '\r' || c == escape_byte || tag) {
      text += escape_byte;
      text += static_cast<char>(c + 64);
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace tessera
