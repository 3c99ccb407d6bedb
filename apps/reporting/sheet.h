#pragma once

#include <string>

#include "data/formats/image.h"

namespace tessera {

// A picture made of other pictures and lines of text; what does not fit is cut off.
class Sheet {
 public:
  // A blank sheet; sizes in pixels.
  Sheet(int height, int width);

  // Draws the picture enlarged `factor` times, its top left corner at (y, x).
  void put(const Image& image, int y, int x, int factor);
  // Draws lines across the square with its top left corner at (y, x), before each of its rows and columns of
  // pixels whose number `step` divides, and around it.
  void rule(int y, int x, int side, int step);
  // Writes a line of text (lettering.h), its top left corner at (y, x); what is wider than `width` pixels is
  // shortened and ends in "..".
  void write(const std::string& text, int y, int x, int width, bool faint = false);

  static constexpr int line_height = 24;  // of a line of text, in pixels
  const Image& image() const { return image_; }

 private:
  Image image_;
};

}  // namespace tessera
