#include "data/fetch/sums.h"

#include <nettle/md5.h>
#include <nettle/sha2.h>

#include <fstream>
#include <vector>

#include "engine/core/error.h"

namespace tessera {

Md5Digest md5(std::initializer_list<std::span<const uint8_t>> parts) {
  md5_ctx sum;
  md5_init(&sum);
  for (const auto& part : parts) md5_update(&sum, part.size(), part.data());
  Md5Digest digest;
  md5_digest(&sum, digest.size(), digest.data());
  return digest;
}

std::string hex(std::span<const uint8_t> digest) {
  std::string text;
  for (const uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

FileSums sums_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  check(file.is_open(), path.string(), ": cannot be opened");
  md5_ctx md5;
  sha256_ctx sha256;
  md5_init(&md5);
  sha256_init(&sha256);
  std::vector<uint8_t> piece(size_t{1} << 18);
  while (file) {
    file.read(reinterpret_cast<char*>(piece.data()), std::ssize(piece));
    md5_update(&md5, static_cast<size_t>(file.gcount()), piece.data());
    sha256_update(&sha256, static_cast<size_t>(file.gcount()), piece.data());
  }
  check(file.eof(), path.string(), ": cannot be read");
  Md5Digest of_md5;
  std::array<uint8_t, SHA256_DIGEST_SIZE> of_sha256;
  md5_digest(&md5, of_md5.size(), of_md5.data());
  sha256_digest(&sha256, of_sha256.size(), of_sha256.data());
  return {hex(of_md5), hex(of_sha256)};
}

std::string difference(const FileSums& found, const FileSums& wanted) {
  if (found.md5 != wanted.md5) return "the MD5 sum " + found.md5 + ", the published file " + wanted.md5;
  if (!wanted.sha256.empty() && found.sha256 != wanted.sha256)
    return "the SHA-256 sum " + found.sha256 + ", the published file " + wanted.sha256;
  return "";
}

}  // namespace tessera
