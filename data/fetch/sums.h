#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>

namespace tessera {

// Checksums by nettle. MD5 sums (RFC 1321) are what the authors of data sets publish for their files, and
// what `data check` compares images by. They give no protection against someone who makes two files with the
// same sum; for that there is SHA-256 beside them.
using Md5Digest = std::array<uint8_t, 16>;

// The sum of the parts, one after another.
Md5Digest md5(std::initializer_list<std::span<const uint8_t>> parts);
// Two lower-case hexadecimal digits a byte.
std::string hex(std::span<const uint8_t> digest);

// The sums of a file in hexadecimal digits: 32 of MD5, 64 of SHA-256 (FIPS 180-4). One that is not known is
// empty.
struct FileSums {
  std::string md5, sha256 = {};
};

// Both sums of a file of any size, which is read in pieces. Fails if it cannot be read.
FileSums sums_of_file(const std::filesystem::path& path);

// Says which of the sums that `wanted` knows is another in `found`: "the SHA-256 sum A, the published file
// B". The empty string if none is.
std::string difference(const FileSums& found, const FileSums& wanted);

}  // namespace tessera
