#pragma once

#include <string>
#include <vector>

namespace tessera {

// The pictures that the arguments name. A file stands for itself; a folder for every JPEG, PNG and BMP file
// in it and below it, sorted by name; a pattern with * ? [ ] that is not itself a file's name for all files
// that match. Fails for a folder without pictures and for a pattern that matches nothing.
std::vector<std::string> picture_files(const std::vector<std::string>& arguments);

}  // namespace tessera
