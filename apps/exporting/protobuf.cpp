#include "apps/exporting/protobuf.h"

#include <bit>

namespace tessera {

namespace {

constexpr int kind_varint = 0, kind_bytes = 2, kind_32_bits = 5;

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
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) bytes_.push_back(static_cast<char>(bits >> shift));
  return *this;
}

ProtoMessage& ProtoMessage::text(int field, std::string_view value) {
  tag(field, kind_bytes);
  varint(value.size());
  bytes_.append(value);
  return *this;
}

}  // namespace tessera
