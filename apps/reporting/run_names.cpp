#include "apps/reporting/run_names.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

namespace tessera {

namespace fs = std::filesystem;

namespace {

// A run's folder and those above it, and of a checkpoint the file without its ending.
struct RunPath {
  fs::path folder;
  std::string file;

  explicit RunPath(const fs::path& path) : folder(fs::absolute(path / "").lexically_normal().parent_path()) {
    if (folder.extension() != ".safetensors") return;
    file = "/" + folder.stem().string();
    folder = folder.parent_path();
  }

  // The last `count` parts of the folder, or all of them, and the file.
  std::string end(int64_t count) const {
    const int64_t parts = std::distance(folder.begin(), folder.end());
    fs::path last;
    for (auto part = std::next(folder.begin(), std::max(parts - count, int64_t{0})); part != folder.end();
         ++part)
      last /= *part;
    return last.string() + file;
  }
};

}  // namespace

std::vector<std::string> names_of_runs(const std::vector<std::string>& paths) {
  const std::vector<RunPath> runs(paths.begin(), paths.end());
  const auto ends = [&](int64_t count) {
    std::vector<std::string> names;
    for (const RunPath& run : runs) names.push_back(run.end(count));
    return names;
  };
  const auto different = [](const std::vector<std::string>& names) {
    return std::set<std::string>(names.begin(), names.end()).size();
  };
  int64_t longest = 1;
  for (const RunPath& run : runs)
    longest = std::max(longest, std::distance(run.folder.begin(), run.folder.end()));
  // A run that is given twice keeps one name, so whole paths say how many names there can be.
  const size_t all = different(ends(longest));
  int64_t count = 1;
  while (different(ends(count)) < all) ++count;
  return ends(count);
}

}  // namespace tessera
