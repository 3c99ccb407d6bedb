#include "apps/reporting/picture_files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "data/formats/folder.h"
#include "data/formats/picture_name.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

void add_folder(const std::string& folder, std::vector<std::string>& files) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (picture_name(at->path()) != PictureName::other && !is_folder(at->path()))
      found.push_back(at->path().string());
  check(!error, folder, ": the folder cannot be read: ", error.message());
  check(!found.empty(), folder, ": no .jpg, .jpeg, .png or .bmp file in this folder or below it");
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
}

void add_matches(const std::string& pattern, std::vector<std::string>& files) {
  glob_t matches{};
  const int status = glob(pattern.c_str(), 0, nullptr, &matches);
  const std::vector<std::string> found(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  globfree(&matches);
  check(status == 0, pattern, ": no file matches this pattern");
  for (const std::string& path : found)
    if (!fs::is_directory(path)) files.push_back(path);
}

}  // namespace

std::vector<std::string> picture_files(const std::vector<std::string>& arguments) {
  std::vector<std::string> files;
  for (const std::string& argument : arguments) {
    if (fs::is_directory(argument))
      add_folder(argument, files);
    else if (!fs::exists(argument) && argument.find_first_of("*?[") != std::string::npos)
      add_matches(argument, files);
    else
      files.push_back(argument);
  }
  return files;
}

}  // namespace tessera
