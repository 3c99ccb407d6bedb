#include "data/fetch/md5.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <vector>

#include "engine/core/error.h"

namespace tessera {

namespace {

static_assert(std::endian::native == std::endian::little, "MD5 reads its words little-endian");

// floor(2^32 |sin(i + 1)|)
const std::array<uint32_t, 64> sines = [] {
  std::array<uint32_t, 64> table{};
  for (size_t i = 0; i < 64; ++i)
    table[i] =
        static_cast<uint32_t>(std::floor(std::abs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
  return table;
}();

constexpr std::array<std::array<int, 4>, 4> turns{
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

}  // namespace

void Md5::block(const uint8_t* bytes) {
  std::array<uint32_t, 16> words;
  std::memcpy(words.data(), bytes, 64);
  uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3];
  const auto step = [&](uint32_t mixed, size_t word, size_t i) {
    const uint32_t turned = std::rotl(a + mixed + sines[i] + words[word], turns[i / 16][i % 4]);
    a = d;
    d = c;
    c = b;
    b += turned;
  };
  for (size_t i = 0; i < 16; ++i) step((b & c) | (~b & d), i, i);
  for (size_t i = 16; i < 32; ++i) step((d & b) | (~d & c), (5 * i + 1) % 16, i);
  for (size_t i = 32; i < 48; ++i) step(b ^ c ^ d, (3 * i + 5) % 16, i);
  for (size_t i = 48; i < 64; ++i) step(c ^ (b | ~d), 7 * i % 16, i);
  state_[0] += a;
  state_[1] += b;
  state_[2] += c;
  state_[3] += d;
}

void Md5::update(std::span<const uint8_t> bytes) {
  const size_t held = length_ % 64;
  length_ += bytes.size();
  if (held > 0) {
    const size_t taken = std::min(64 - held, bytes.size());
    std::copy_n(bytes.begin(), taken, waiting_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(taken);
    if (held + taken < 64) return;
    block(waiting_.data());
  }
  for (; bytes.size() >= 64; bytes = bytes.subspan(64)) block(bytes.data());
  std::copy(bytes.begin(), bytes.end(), waiting_.begin());
}

Md5::Digest Md5::finish() {
  const uint64_t bits = length_ * 8;
  std::array<uint8_t, 72> end{0x80};  // a one bit, zeros up to 8 bytes before a block's end, the length
  const size_t zeros = (119 - length_ % 64) % 64;
  std::memcpy(end.data() + 1 + zeros, &bits, 8);
  update(std::span(end).first(1 + zeros + 8));
  return std::bit_cast<Digest>(state_);
}

Md5::Digest md5(std::span<const uint8_t> bytes) {
  Md5 sum;
  sum.update(bytes);
  return sum.finish();
}

std::string hex(const Md5::Digest& digest) {
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
