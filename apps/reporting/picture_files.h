#pragma once

#include <string>
#include <vector>

namespace tessera {

// The pictures that the arguments name. A file stands for itself; a folder for every picture in it and
// below it, sorted by name, also one that cannot be read (WebP, a link to nothing), so that who reads them
// names it; a pattern with * ? [ ] that is not itself a file's name for all files that match. Fails for a
// folder without pictures and for a pattern that matches nothing.
std::vector<std::string> picture_files(const std::vector<std::string>& arguments);

}  // namespace tessera
