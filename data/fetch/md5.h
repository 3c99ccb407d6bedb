#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>

namespace tessera {

// MD5 sums (RFC 1321) by nettle. The authors of data sets publish them for their files, and `data check`
// compares images by them. They give no protection against someone who makes two files with the same sum.
using Md5Digest = std::array<uint8_t, 16>;

// The sum of the parts, one after another.
Md5Digest md5(std::initializer_list<std::span<const uint8_t>> parts);
// 32 lower-case hexadecimal digits.
std::string hex(const Md5Digest& digest);
// The sum of a file of any size, which is read in pieces. Fails if it cannot be read.
std::string md5_of_file(const std::filesystem::path& path);

}  // namespace tessera
