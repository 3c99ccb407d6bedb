#include "data/formats/folder.h"

#include <algorithm>
#include <cstdint>

#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// Limits for lists and annotations; the largest known one has less than a third of these lines.
constexpr int64_t max_text_bytes = int64_t{1} << 24, max_text_lines = 250000;

}  // namespace

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::vector<std::string> read_lines(const fs::path& path) {
  const std::vector<uint8_t> bytes = read_bytes(path, max_text_bytes);
  const auto ends = std::count(bytes.begin(), bytes.end(), '\n');
  check(ends <= max_text_lines, path.string(), ": ", ends, " lines, more than the ", max_text_lines,
        " that are read");
  std::vector<std::string> lines;
  for (auto from = bytes.begin(); from != bytes.end();) {
    const auto end = std::find(from, bytes.end(), '\n');
    const bool crlf = end != from && *(end - 1) == '\r';
    lines.emplace_back(from, crlf ? end - 1 : end);
    from = end == bytes.end() ? end : end + 1;
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::vector<fs::path> list_folder(const fs::path& folder) {
  check(is_folder(folder), folder.string(), ": no such folder");
  std::error_code error;
  std::vector<fs::path> entries;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    if (!entry->path().filename().string().starts_with('.')) entries.push_back(entry->path());
  check(!error, folder.string(), ": cannot be listed: ", error.message());
  std::sort(entries.begin(), entries.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return entries;
}

fs::path find_root(const std::string& dataset, const fs::path& dir, const std::string& folder,
                   const std::string& marker, const std::string& hint) {
  check(is_folder(dir), dataset, ": ", dir.string().empty() ? "no data folder was given" : dir.string(),
        dir.string().empty() ? "; " : " is not a folder; ", hint);
  std::error_code error;
  for (const fs::path& root : {dir, dir / folder})
    if (fs::exists(root / marker, error)) return root;
  fail(dataset, ": neither ", dir.string(), " nor ", (dir / folder).string(), " holds ", marker, "; ", hint);
}

}  // namespace tessera
