#include "data/fetch/fetch.h"

#include <algorithm>

#include "data/fetch/md5.h"
#include "data/fetch/unpack.h"
#include "data/sets/folder.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int64_t archive_growth = 16, archive_allowance = int64_t{1} << 28;

std::string name_of(const std::string& url) { return url.substr(url.rfind('/') + 1); }

std::string address(const PublishedFile& file, const std::string& mirror) {
  if (mirror.empty()) return file.url;
  return mirror + (mirror.ends_with('/') ? "" : "/") + name_of(file.url);
}

bool holds_all(const fs::path& root, const std::vector<std::string>& markers) {
  return std::all_of(markers.begin(), markers.end(),
                     [&](const auto& name) { return fs::exists(root / name); });
}

void bring(const PublishedFile& file, const fs::path& dir, const std::string& folder,
           const FetchOptions& options) {
  const std::string name = name_of(file.url);
  const fs::path to = dir / name;
  const auto tell = [&](const std::string& what) {
    return [&options, what](int64_t done, int64_t total) {
      if (options.at_work) options.at_work(what, done, total);
    };
  };
  if (is_file(to)) {
    const std::string sum = md5_of_file(to);
    check(sum == file.md5, to.string(), ": is there with the MD5 sum ", sum, ", the published file has ",
          file.md5, "; remove it to fetch it again");
  } else {
    download(address(file, options.mirror), to, file.bytes, file.md5, tell(name));
  }
  if (!file.archive) return;
  const int64_t most = archive_growth * static_cast<int64_t>(fs::file_size(to)) + archive_allowance;
  unpack(to, dir, folder, most, tell("unpacking " + name));
  std::error_code none;
  if (!options.keep_archive) fs::remove(to, none);
}

}  // namespace

fs::path fetch(const PublishedSet& set, const fs::path& dir, const FetchOptions& options, bool& already) {
  for (const fs::path& root : {dir, dir / set.folder})
    if (already = holds_all(root, set.markers); already) return root;
  check(!set.files.empty(), set.name, ": is not to be fetched without an account: ", set.how_to_get);
  check(options.mirror.empty() || options.mirror.starts_with("http://") ||
            options.mirror.starts_with("https://"),
        "--url ", options.mirror, ": wanted http://... or https://...");
  std::error_code error;
  fs::create_directories(dir, error);
  check(is_folder(dir), dir.string(), ": cannot be made: ", error.message());
  for (const PublishedFile& file : set.files) bring(file, dir, set.folder, options);
  const fs::path root = set.folder.empty() ? dir : dir / set.folder;
  check(holds_all(root, set.markers), set.name, ": ", root.string(), " lacks some of its files after all");
  return root;
}

}  // namespace tessera
