#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace tessera {

// MD5 (RFC 1321): what the data sets' authors publish of their files, and how equal pictures find each other.
// No protection against someone who makes two files with one sum.
class Md5 {
 public:
  using Digest = std::array<uint8_t, 16>;

  void update(std::span<const uint8_t> bytes);
  // Of all that came. Nothing may come after.
  Digest finish();

 private:
  void block(const uint8_t* bytes);  // 64 of them

  std::array<uint32_t, 4> state_{0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u};
  std::array<uint8_t, 64> waiting_{};
  uint64_t length_ = 0;  // bytes so far
};

Md5::Digest md5(std::span<const uint8_t> bytes);
// "c32a1d4ab5d03f1284b67883e8d87530"
std::string hex(const Md5::Digest& digest);
// Of a file, in pieces. Fails if it cannot be read.
std::string md5_of_file(const std::filesystem::path& path);

}  // namespace tessera
