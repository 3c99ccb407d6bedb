#pragma once

#include <filesystem>

namespace tessera {

// What the ending of a file's name, in either case, says of it. foreign: a picture in a format that is not
// read.
enum class PictureName { readable, foreign, other };

PictureName picture_name(const std::filesystem::path& path);

}  // namespace tessera
