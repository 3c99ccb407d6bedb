#pragma once

// The numbers of a page: compressed blocks, one behind the other, as text that HTML leaves as it is.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/core/tensor.h"
#include "engine/io/json.h"

namespace tessera {

// Collects the blocks of a page. A block is described in the page's index by [code, offset, bytes, checksum]:
// how to read it, where it begins, how many compressed bytes it has, and the CRC-32 of what it holds
// (little-endian).
class Container {
 public:
  // A tensor's elements: byte planes (all first bytes, all second bytes, ...), deflated. Equal tensors are
  // stored once.
  Json add(const Tensor& x);
  Json add(std::span<const uint8_t> bytes, int64_t planes = 1);

  size_t bytes() const { return data_.size(); }
  // The blocks in one text, see in_html().
  std::string text() const;

 private:
  std::string data_;
  std::map<std::pair<uint32_t, size_t>, Json> known_;  // by checksum and size
};

// Any bytes as the text of a <script> of a page in the encoding windows-1252, which maps all 256 bytes. NUL,
// the carriage return and what would end the script or begin a comment in it are written as `escape_byte` and
// the byte plus 64.
std::string in_html(std::string_view bytes);

inline constexpr char escape_byte = 0x1b;

}  // namespace tessera
