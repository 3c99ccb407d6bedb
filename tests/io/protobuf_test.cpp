#include "engine/io/protobuf.h"

#include <doctest/doctest.h>

#include <array>

using namespace tessera;

// The bytes of protobuf.dev/programming-guides/encoding, and of its rules.
TEST_CASE("a message is written field by field, as the guide to the wire format has it") {
  CHECK(ProtoMessage().number(1, 150).bytes() == "\x08\x96\x01");
  CHECK(ProtoMessage().text(2, "testing").bytes() == "\x12\x07testing");
  CHECK(ProtoMessage().message(3, ProtoMessage().number(1, 150)).bytes() == "\x1a\x03\x08\x96\x01");
  CHECK(ProtoMessage().number(1, -2).bytes() == "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  CHECK(ProtoMessage().number(16, 0).bytes() == std::string("\x80\x01\x00", 3));
  CHECK(ProtoMessage().real(1, 1.5f).bytes() == std::string("\x0d\x00\x00\xc0\x3f", 5));
  CHECK(ProtoMessage().real64(1, -2).bytes() == std::string("\x09\0\0\0\0\0\0\0\xc0", 9));
  constexpr std::array values{-2.0, 1.0};
  CHECK(ProtoMessage().packed(4, values).bytes() ==
        std::string("\x22\x10\0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\xf0\x3f", 18));
  CHECK(ProtoMessage().packed(4, {}).bytes() == std::string("\x22\x00", 2));
}
