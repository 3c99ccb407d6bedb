#include "engine/io/protobuf.h"

#include <bit>

namespace tessera {

namespace {

constexpr int kind_varint = 0, kind_64_bits = 1, kind_bytes = 2, kind_32_bits = 5;

template <class T> void append_little_endian(std::string& bytes, T bits) {
  for (size_t i = 0; i < sizeof bits; ++i) bytes.push_back(static_cast<char>(bits >> 8 * i));
}

}  // namespace

// Seven bits a byte, the lowest first; the eighth says that more follow.
void ProtoMessage::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
  bytes_.push_back(static_cast<char>(value));
}

ProtoMessage& ProtoMessage::number(int field, int64_t value) {
  tag(field, kind_varint);
  varint(static_cast<uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::real(int field, float value) {
  tag(field, kind_32_bits);
  append_little_endian(bytes_, std::bit_cast<uint32_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::real64(int field, double value) {
  tag(field, kind_64_bits);
  append_little_endian(bytes_, std::bit_cast<uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::packed(int field, std::span<const double> values) {
  std::string bytes;
  for (const double value : values) append_little_endian(bytes, std::bit_cast<uint64_t>(value));
  return text(field, bytes);
}

ProtoMessage& ProtoMessage::text(int field, std::string_view value) {
  tag(field, kind_bytes);
  varint(value.size());
  bytes_.append(value);
  return *this;
}

}  // namespace tessera
