// Decodes the pictures whose paths come on stdin, a line each, and prints "HEIGHT WIDTH CRC-32" of the RGB
// pixels, or "refused: why": what compare_with_pillow.py compares.

#include <zlib.h>

#include <iostream>

#include "data/formats/image.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"

int main() {
  for (std::string path; std::getline(std::cin, path);) {
    try {
      const tessera::Image image = tessera::load_image(path);
      const uLong sum = crc32(0, image.pixels.data(), static_cast<uInt>(image.pixels.size()));
      std::cout << image.height << ' ' << image.width << ' ' << sum << '\n';
    } catch (const tessera::Error& error) {
      std::cout << "refused: " << tessera::printable(error.what(), false) << '\n';
    }
  }
}
