#pragma once

#include <filesystem>

namespace tessera {

// The kind of file that the ending of a name, in either case, stands for. foreign: a picture in a format that
// is not read.
enum class PictureName { readable, foreign, other };

PictureName picture_name(const std::filesystem::path& path);

}  // namespace tessera
