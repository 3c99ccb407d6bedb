#include "data/formats/picture_name.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

namespace tessera {

PictureName picture_name(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto is_one_of = [&](std::initializer_list<const char*> known) {
    return std::find(known.begin(), known.end(), ending) != known.end();
  };
  if (is_one_of({".jpg", ".jpeg", ".jpe", ".png", ".bmp"})) return PictureName::readable;
  if (is_one_of({".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm", ".heic", ".heif", ".avif",
                 ".jp2", ".jxl", ".tga", ".svg", ".ico"}))
    return PictureName::foreign;
  return PictureName::other;
}

}  // namespace tessera
