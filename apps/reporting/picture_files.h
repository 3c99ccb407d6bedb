#pragma once

#include <string>
#include <vector>

namespace tessera {

// The pictures that arguments name: a file as it is; of a folder and those below it every JPEG, PNG and BMP
// file, by name; a pattern with * ? [ ], where no file has that name, all that match. Fails for a folder
// without pictures and a pattern that nothing matches.
std::vector<std::string> picture_files(const std::vector<std::string>& arguments);

}  // namespace tessera
