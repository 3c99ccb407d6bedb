#pragma once

// Pictures of one's own: stripes, coarse and fine ones, of any colour.

#include <tessera/data.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

constexpr int side = 16;

inline tessera::Pictures stripes(int count, uint64_t seed) {
  tessera::Pictures pictures{side, side, 3, {}, {}};
  tessera::Random random(seed);
  for (int i = 0; i < count; ++i) {
    const int label = i % 2, width = label == 0 ? 4 : 1;
    const auto phase = static_cast<int>(random.below(8));
    std::array<uint8_t, 3> colours{};
    for (uint8_t& colour : colours) colour = static_cast<uint8_t>(96 + random.below(160));
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x)
        for (const uint8_t colour : colours)
          pictures.pixels.push_back((x + phase) / width % 2 == 0 ? colour : uint8_t{16});
    pictures.labels.push_back(label);
  }
  return pictures;
}

// Writes a split as FOLDER/CLASS/NUMBER.bmp, which `tessera eval --dataset folder` reads.
inline void write_bitmaps(const std::filesystem::path& folder, const tessera::Dataset& data,
                          const tessera::Split& split) {
  tessera::Image image;
  for (int64_t i = 0; i < split.size(); ++i) {
    split.image(i, image);
    const auto to = folder / data.class_names[static_cast<size_t>(split.label(i))];
    std::filesystem::create_directories(to);
    std::ofstream file(to / (std::to_string(1000 + i) + ".bmp"), std::ios::binary);
    const auto number = [&](uint32_t value, int bytes) {
      for (int b = 0; b < bytes; ++b) file.put(static_cast<char>(value >> (8 * b) & 255));
    };
    file << "BM";
    for (const uint32_t field : {54u + 3 * side * side, 0u, 54u, 40u, uint32_t{side}, uint32_t{side}})
      number(field, 4);
    number(1, 2), number(24, 2);
    for (int field = 0; field < 6; ++field) number(0, 4);
    for (int y = side - 1; y >= 0;
         --y)  // from the lowest row up, blue first; rows of 48 bytes need no padding
      for (int x = 0; x < side; ++x)
        for (int c = 2; c >= 0; --c) number(image.pixels[static_cast<size_t>((y * side + x) * 3 + c)], 1);
  }
}
