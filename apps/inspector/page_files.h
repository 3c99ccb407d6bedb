#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// A file of apps/inspector/page/, embedded in the library when it is built.
struct PageFile {
  std::string name, text;
};
const std::vector<PageFile>& page_files();

// The text of one of them. Fails for a name that is not there.
const std::string& page_file(std::string_view name);

// The scripts in the order of files.txt, without comments and indentation.
std::vector<std::string> page_scripts();

}  // namespace tessera
