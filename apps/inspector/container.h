#pragma once

// The numbers of a page: compressed blocks, one behind the other, as text that HTML leaves as it is.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "apps/inspector/rounding.h"
#include "engine/core/tensor.h"
#include "engine/io/json.h"

namespace tessera {

// Collects the blocks of a page. A block is described in the page's index by [code, offset, bytes, checksum]:
// how to read it, where it begins, how many bytes it has, and the CRC-32 of what it stands for
// (little-endian).
//
//   bytes      deflated as they are
//   planes     deflated: all first bytes of the elements, then all second bytes, and so on
//   floats     f32, deflated: the exponents; then the planes of sign and fraction, the highest byte first
//   computed   the reader computes the tensor; the block tells how to round it (see Rounding): `zero` as f64;
//              the number of close cells, and for each twice the distance from the one before, plus 1 for
//              odd; the number of small cells, their distances, their values as f32. Integers have 7 bits a
//              byte, the lowest first, and 128 in each byte but the last.
class Container {
 public:
  // Equal tensors are stored once.
  Json add(const Tensor& x);
  Json add(std::span<const uint8_t> bytes);
  Json add_computed(const Tensor& x, const Rounding& rounding);

  // The blocks in one text, see in_html().
  std::string text() const;

 private:
  Json append(const char* code, const std::string& block, uint32_t sum);

  std::string data_;
  std::map<std::pair<uint32_t, size_t>, Json> known_;  // by checksum and size
};

// Any bytes as the text of a <script> of a page in the encoding windows-1252, which maps all 256 bytes. NUL,
// the carriage return and what would end the script or begin a comment in it are written as `escape_byte` and
// the byte plus 64.
std::string in_html(std::string_view bytes);

inline constexpr char escape_byte = 0x1b;

}  // namespace tessera
