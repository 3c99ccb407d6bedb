#pragma once

#include <filesystem>
#include <functional>

#include "data/fetch/published.h"

namespace tessera {

struct FetchOptions {
  std::string mirror{};       // where the files are under their names, instead of their own addresses
  bool keep_archive = false;  // after it was unpacked
  // Told the file at work, its bytes that are there, and all of them (0: not known).
  std::function<void(const std::string& file, int64_t done, int64_t total)> at_work = {};
};

// Brings the files of `set` to `dir`, which is made: each is fetched (download.h) unless it is there with the
// published sum, and unpacked (unpack.h) if it is an archive. Returns the folder that open_dataset takes.
// Nothing is done, and `already` set, where all markers of the set are there. Fails as those two do, for a
// file that is there with another sum, and for a set that is not to be had so, with the way to get it.
std::filesystem::path fetch(const PublishedSet& set, const std::filesystem::path& dir,
                            const FetchOptions& options, bool& already);

}  // namespace tessera
