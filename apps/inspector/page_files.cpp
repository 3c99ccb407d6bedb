#include "apps/inspector/page_files.h"

#include <algorithm>
#include <sstream>

#include "engine/core/error.h"

namespace tessera {

const std::string& page_file(std::string_view name) {
  const std::vector<PageFile>& files = page_files();
  const auto file = std::ranges::find(files, name, &PageFile::name);
  check(file != files.end(), "page: no file ", name, " in apps/inspector/page");
  return file->text;
}

std::vector<std::string> page_scripts() {
  std::vector<std::string> scripts;
  std::istringstream names(page_file("files.txt"));
  for (std::string name; names >> name;) scripts.push_back(page_file(name));
  return scripts;
}

}  // namespace tessera
