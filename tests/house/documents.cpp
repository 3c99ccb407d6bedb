#include "tests/house/documents.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <regex>

namespace tessera::house {

namespace fs = std::filesystem;

namespace {

constexpr const char* tops[] = {"engine", "models", "data", "apps", "tests"};

// Calls `see` with the path from the root, the line's number and the line, for all lines of a file.
using Line = std::function<void(const std::string& path, int64_t number, const std::string& line)>;

void read_lines(const fs::path& root, const fs::path& path, const Line& see) {
  std::ifstream file(path);
  const std::string name = fs::relative(path, root).generic_string();
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) see(name, ++number, line);
}

// The top-level .md files, and the files of the rooms with one of these endings.
std::vector<fs::path> files_of(const fs::path& root, std::initializer_list<const char*> endings) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  for (const char* top : tops) {
    if (!fs::is_directory(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top))
      if (entry.is_regular_file() && std::ranges::find(endings, entry.path().extension()) != endings.end())
        files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

void check_readme(const fs::path& root, const fs::path& folder, int64_t most,
                  std::vector<std::string>& breaches) {
  const fs::path path = folder / "README.md";
  const std::string name = fs::relative(path, root).generic_string();
  if (!fs::exists(path)) return breaches.push_back(name + " is missing");
  int64_t lines = 0;
  read_lines(root, path, [&](const std::string&, int64_t number, const std::string&) { lines = number; });
  if (lines > most)
    breaches.push_back(name + " has " + std::to_string(lines) + " lines, " + std::to_string(most) +
                       " are allowed");
}

// "models/README.md" of "models/README.md#weights"; empty for a link to the web or within the page.
std::string file_of_link(const std::string& link) {
  if (link.find("://") != std::string::npos || link.starts_with("mailto:")) return "";
  return link.substr(0, link.find('#'));
}

std::string place(const std::string& path, int64_t line) { return path + ":" + std::to_string(line); }

}  // namespace

std::vector<std::string> readme_breaches(const fs::path& root, int64_t most_lines, int64_t most_top_lines) {
  std::vector<std::string> breaches;
  check_readme(root, root, most_top_lines, breaches);
  for (const char* top : tops) {
    check_readme(root, root / top, most_lines, breaches);
    if (!fs::is_directory(root / top)) continue;
    for (const auto& entry : fs::directory_iterator(root / top))
      if (entry.is_directory() && !entry.path().filename().string().starts_with('_'))
        check_readme(root, entry.path(), most_lines, breaches);
  }
  return breaches;
}

std::vector<std::string> broken_links(const fs::path& root) {
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  std::vector<std::string> broken;
  for (const fs::path& file : files_of(root, {".md"})) {
    bool code = false;
    read_lines(root, file, [&](const std::string& name, int64_t number, const std::string& line) {
      if (line.starts_with("```")) code = !code;
      if (code) return;
      for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at) {
        const std::string target = file_of_link((*at)[1]);
        if (!target.empty() && !fs::exists(file.parent_path() / target))
          broken.push_back(place(name, number) + ": no " + target);
      }
    });
  }
  return broken;
}

std::vector<std::string> references_to_absent_files(const fs::path& root) {
  static const std::regex absent(
      R"(\b(reference|papers)/\w|\b(SIZES|HOUSE|DESIGN|EXAMPLES|COVERAGE|INSPECTOR)\.md|\.\./shared\b)");
  std::vector<std::string> found;
  for (const fs::path& file : files_of(root, {".md", ".h", ".cpp", ".cu", ".cuh", ".py", ".txt"}))
    read_lines(root, file, [&](const std::string& name, int64_t number, const std::string& line) {
      if (std::regex_search(line, absent) && line.find("TESSERA_SHARED") == std::string::npos)
        found.push_back(place(name, number) + ": " + line);
    });
  return found;
}

std::vector<std::string> cuda_conditions(const fs::path& root) {
  static const std::regex condition(R"(^\s*#\s*(if|ifdef|ifndef|elif)\b.*\bTESSERA_CUDA\b)");
  std::vector<std::string> found;
  for (const fs::path& file : files_of(root, {".h", ".cpp", ".cu", ".cuh"}))
    read_lines(root, file, [&](const std::string& name, int64_t number, const std::string& line) {
      if (name.starts_with("engine/") && std::regex_search(line, condition))
        found.push_back(place(name, number));
    });
  return found;
}

}  // namespace tessera::house
