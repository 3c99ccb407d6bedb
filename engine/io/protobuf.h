#pragma once

// The wire format of protocol buffers (protobuf.dev/programming-guides/encoding), as much of it as an ONNX
// file and TensorBoard's events take. Writing it needs four kinds of fields, so no library is asked for.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

// A message while it is written: fields one after another, each a tag (its number and its kind) and a value.
class ProtoMessage {
 public:
  ProtoMessage& number(int field, int64_t value);  // int32, int64, enum
  ProtoMessage& real(int field, float value);
  ProtoMessage& real64(int field, double value);
  ProtoMessage& packed(int field, std::span<const double> values);  // repeated double
  ProtoMessage& text(int field, std::string_view value);            // string, bytes
  ProtoMessage& message(int field, const ProtoMessage& value) { return text(field, value.bytes()); }

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value);
  void tag(int field, int kind) { varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(kind)); }

  std::string bytes_;
};

}  // namespace tessera
