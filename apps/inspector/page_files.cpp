#include "apps/inspector/page_files.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "engine/core/error.h"

namespace tessera {

namespace {

// The script without indentation, empty lines and lines of comment, which the page's readers do not need.
// No line of a script is in the middle of a text.
std::string lean(const std::string& script) {
  std::string text;
  std::istringstream lines(script);
  bool in_comment = false;
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    const std::string_view code = std::string_view(line).substr(begin);
    const bool begins = code.starts_with("/*");
    if (begins || in_comment) {
      in_comment = code.find("*/") == code.npos;
      continue;
    }
    if (!code.starts_with("//")) text.append(code) += '\n';
  }
  return text;
}

}  // namespace

const std::string& page_file(std::string_view name) {
  const std::vector<PageFile>& files = page_files();
  const auto file = std::ranges::find(files, name, &PageFile::name);
  check(file != files.end(), "page: no file ", name, " in apps/inspector/page");
  return file->text;
}

std::vector<std::string> page_scripts() {
  std::vector<std::string> scripts;
  std::istringstream names(page_file("files.txt"));
  for (std::string name; names >> name;) scripts.push_back(lean(page_file(name)));
  return scripts;
}

}  // namespace tessera
