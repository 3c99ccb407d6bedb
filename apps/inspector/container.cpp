#include "apps/inspector/container.h"

#include <zlib.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "engine/core/error.h"

namespace tessera {

namespace {

// zlib's raw deflate, which browsers call "deflate-raw".
std::string deflated(std::span<const uint8_t> bytes) {
  z_stream stream{};
  check(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) == Z_OK,
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

std::vector<uint8_t> in_planes(std::span<const uint8_t> bytes, size_t planes) {
  const size_t count = bytes.size() / planes;
  std::vector<uint8_t> sorted(bytes.size());
  for (size_t plane = 0; plane < planes; ++plane)
    for (size_t i = 0; i < count; ++i) sorted[plane * count + i] = bytes[i * planes + plane];
  return sorted;
}

uint32_t checksum(std::span<const uint8_t> bytes) {
  return static_cast<uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
}

}  // namespace

Json Container::add(const Tensor& x) {
  const Tensor here = x.to(Device::cpu);
  return add({static_cast<const uint8_t*>(here.raw()), here.bytes()},
             static_cast<int64_t>(size_of(here.dtype())));
}

Json Container::add(std::span<const uint8_t> bytes, int64_t planes) {
  const uint32_t sum = checksum(bytes);
  Json& block = known_[{sum, bytes.size()}];
  if (!block.is_null()) return block;
  const std::string packed = deflated(in_planes(bytes, static_cast<size_t>(planes)));
  block = Json::array({"raw", data_.size(), packed.size(), sum});
  data_ += packed;
  return block;
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
