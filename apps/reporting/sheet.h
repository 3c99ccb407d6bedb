#pragma once

#include <string>

#include "data/formats/image.h"

namespace tessera {

// A sheet of paper to lay pictures and words on; what does not fit is cut off.
class Sheet {
 public:
  // Height and width in pixels.
  Sheet(int height, int width);

  // The picture `factor` times as large, its top left corner at (y, x).
  void put(const Image& image, int y, int x, int factor);
  // A line of text whose top left corner is at (y, x), in stb_easy_font's letters; other characters than
  // ASCII's become '?'. Text wider than `width` pixels ends in "..".
  void write(const std::string& text, int y, int x, int width, bool faint = false);

  static constexpr int line_height = 24;  // of text
  const Image& image() const { return image_; }

 private:
  Image image_;
};

}  // namespace tessera
