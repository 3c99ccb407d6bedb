#include "data/fetch/fetch.h"

#include <algorithm>

#include "data/fetch/sums.h"
#include "data/fetch/unpack.h"
#include "data/formats/folder.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// An archive may unpack to `archive_growth` times its size and `archive_allowance` bytes more.
constexpr int64_t archive_growth = 16, archive_allowance = int64_t{1} << 28;

std::string name_of(const std::string& url) { return url.substr(url.rfind('/') + 1); }

// Where the file may be, in the order in which it is asked for: a server that was published without TLS may
// have it by now.
std::vector<std::string> addresses(const PublishedFile& file, const std::string& mirror) {
  if (!mirror.empty()) return {mirror + (mirror.ends_with('/') ? "" : "/") + name_of(file.url)};
  if (!file.url.starts_with("http://")) return {file.url};
  return {"https" + file.url.substr(4), file.url};
}

void download_from_first(const std::vector<std::string>& urls, const fs::path& to, const PublishedFile& file,
                         const ByteProgress& on_progress) {
  for (const std::string& url : urls) {
    try {
      return download(url, to, file.bytes, {file.md5, file.sha256}, on_progress);
    } catch (const Unreachable&) {
      if (&url == &urls.back()) throw;
    }
  }
}

bool holds_all(const fs::path& root, const std::vector<std::string>& markers) {
  return std::all_of(markers.begin(), markers.end(),
                     [&](const auto& name) { return fs::exists(root / name); });
}

void fetch_file(const PublishedFile& file, const fs::path& dir, const std::string& folder,
                const FetchOptions& options) {
  const std::string name = name_of(file.url);
  const fs::path to = dir / name;
  const auto tell = [&](const std::string& what) {
    return [&options, what](int64_t done, int64_t total) {
      if (options.on_progress) options.on_progress(what, done, total);
    };
  };
  if (is_file(to)) {
    const std::string other = difference(sums_of_file(to), {file.md5, file.sha256});
    check(other.empty(), to.string(), ": is there with ", other, "; remove it to fetch it again");
  } else {
    download_from_first(addresses(file, options.mirror), to, file, tell(name));
  }
  if (!file.archive) return;
  const int64_t most = archive_growth * static_cast<int64_t>(fs::file_size(to)) + archive_allowance;
  unpack(to, dir, folder, most, tell("unpacking " + name));
  std::error_code none;
  if (!options.keep_archive) fs::remove(to, none);
}

}  // namespace

Fetched fetch(const DatasetEntry& entry, const fs::path& dir, const FetchOptions& options) {
  check(entry.published.has_value(), entry.name, ": is not published; there is nothing to fetch");
  const PublishedSet& set = *entry.published;
  for (const fs::path& root : {dir, dir / set.folder})
    if (holds_all(root, set.markers)) return {root, true};
  check(!set.files.empty(), entry.name, ": cannot be downloaded without an account: ", set.how_to_get);
  check(options.mirror.empty() || options.mirror.starts_with("http://") ||
            options.mirror.starts_with("https://"),
        "--url ", options.mirror, ": wanted http://... or https://...");
  std::error_code error;
  fs::create_directories(dir, error);
  check(is_folder(dir), dir.string(), ": cannot be made: ", error.message());
  for (const PublishedFile& file : set.files) fetch_file(file, dir, set.folder, options);
  const fs::path root = set.folder.empty() ? dir : dir / set.folder;
  check(holds_all(root, set.markers), entry.name, ": ", root.string(),
        " lacks some of the set's files after the download");
  return {root, false};
}

}  // namespace tessera
