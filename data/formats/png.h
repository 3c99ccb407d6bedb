#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tessera {

// Fails, in the name of `path` and with the byte, unless a PNG's chunks and their checksums are whole up to
// its end chunk, at which stb_image does not look; and for a size beyond the limits of image.h.
void check_png(std::span<const uint8_t> bytes, const std::string& path);

// Inflates the pixels of a PNG that check_png let pass and throws them away: fails unless they are all there,
// each row with a filter that exists. So a picture that takes much memory is known to be whole before it
// takes it.
void check_png_pixels(std::span<const uint8_t> bytes, const std::string& path);

}  // namespace tessera
