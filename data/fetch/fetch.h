#pragma once

#include <filesystem>
#include <functional>

#include "data/sets/entry.h"

namespace tessera {

struct FetchOptions {
  std::string mirror{};  ///< base address under which the files have their names; "": the published addresses
  bool keep_archive = false;  ///< after it is unpacked
  /// Called with the name of the current file, its bytes so far and its size in bytes (0 if unknown).
  std::function<void(const std::string& file, int64_t done, int64_t total)> on_progress = {};
};

struct Fetched {
  std::filesystem::path folder;  ///< what open_dataset takes
  bool already_there;            ///< nothing was downloaded
};

/// Downloads the published files of a data set to `dir`, which is created if need be. A file that is there
/// with the published checksum is not downloaded again (download.h); an archive is unpacked (unpack.h). If
/// all of the set's markers exist, nothing is done. Fails as download() and unpack() do, for a file that is
/// there with another checksum, and, with instructions, for a set whose download needs an account. `entry`
/// must have published files or instructions.
Fetched fetch(const DatasetEntry& entry, const std::filesystem::path& dir, const FetchOptions& options);

}  // namespace tessera
