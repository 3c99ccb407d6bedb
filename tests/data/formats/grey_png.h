#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

// Writes a PNG file with an arbitrary header. `samples` are the rows as they are stored, for 8-bit grey one
// byte a pixel. The data is stored without compression; the palette that colour type 3 needs is all black.
inline std::vector<uint8_t> png_of(int height, int width, const std::vector<uint8_t>& samples,
                                   uint8_t depth = 8, uint8_t colour = 0) {
  std::string file("\x89PNG\r\n\x1A\n", 8);
  const auto number = [](uint32_t value) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
    return text;
  };
  const auto chunk = [&](const std::string& name, const std::string& data) {
    uint32_t crc = ~0U;
    for (const char c : name + data) {
      crc ^= static_cast<uint8_t>(c);
      for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0);
    }
    file += number(static_cast<uint32_t>(data.size())) + name + data + number(~crc);
  };
  std::string rows;
  const size_t row = samples.size() / static_cast<size_t>(height);
  for (size_t y = 0; y < static_cast<size_t>(height); ++y)
    rows += '\0' + std::string(samples.begin() + static_cast<int64_t>(y * row),
                               samples.begin() + static_cast<int64_t>((y + 1) * row));
  uint32_t a = 1, b = 0;  // Adler-32
  for (const char c : rows) {
    a = (a + static_cast<uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  const auto size = static_cast<uint16_t>(rows.size());
  std::string zlib("\x78\x01\x01", 3);  // one stored block
  for (const uint16_t word : {size, static_cast<uint16_t>(~size)}) {
    zlib += static_cast<char>(word & 0xFF);
    zlib += static_cast<char>(word >> 8);
  }
  chunk("IHDR", number(static_cast<uint32_t>(width)) + number(static_cast<uint32_t>(height)) +
                    static_cast<char>(depth) + static_cast<char>(colour) + std::string(3, '\0'));
  if (colour == 3) chunk("PLTE", std::string(768, '\0'));
  chunk("IDAT", zlib + rows + number(b << 16 | a));
  chunk("IEND", "");
  return {file.begin(), file.end()};
}

}  // namespace tessera
