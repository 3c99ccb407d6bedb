#include "data/fetch/md5.h"

#include <nettle/md5.h>

#include <fstream>
#include <vector>

#include "engine/core/error.h"

namespace tessera {

namespace {

class Md5 {
 public:
  Md5() { md5_init(&context_); }
  void update(std::span<const uint8_t> bytes) { md5_update(&context_, bytes.size(), bytes.data()); }
  Md5Digest finish() {
    Md5Digest digest;
    md5_digest(&context_, digest.size(), digest.data());
    return digest;
  }

 private:
  md5_ctx context_;
};

}  // namespace

Md5Digest md5(std::initializer_list<std::span<const uint8_t>> parts) {
  Md5 sum;
  for (const auto& part : parts) sum.update(part);
  return sum.finish();
}

std::string hex(const Md5Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string md5_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  check(file.is_open(), path.string(), ": cannot be opened");
  Md5 sum;
  std::vector<uint8_t> piece(size_t{1} << 18);
  while (file) {
    file.read(reinterpret_cast<char*>(piece.data()), std::ssize(piece));
    sum.update(std::span(piece).first(static_cast<size_t>(file.gcount())));
  }
  check(file.eof(), path.string(), ": cannot be read");
  return hex(sum.finish());
}

}  // namespace tessera
