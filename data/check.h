#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "data/sets/entry.h"

namespace tessera {

/// One kind of oddity in a data set.
struct Finding {
  std::string kind;     ///< for programs, e.g. "unreadable"
  std::string message;  ///< for people
  int64_t count = 0;
  std::vector<std::string> examples;  ///< sources of the first images concerned
  bool wrong = true;                  ///< false: worth knowing, but no fault
  int64_t same_files = 0;  ///< for duplicates and leakage: how many are also equal as files, byte for byte
};

struct DatasetCheck {
  std::vector<Finding> findings;
  std::array<int64_t, 2> images{};                ///< {training, validation}
  std::array<std::vector<int64_t>, 2> histogram;  ///< images of each class, by split
  std::array<int, 4> sizes{};                     ///< least height, most height, least width, most width

  bool passed() const;
};

/// Decodes every image and mask, in parallel, and reports: those that cannot be decoded; those of another
/// size than all should have; equal files and equal images, within a split and across the splits; equal
/// images of different classes; counts of images and classes that differ from the published ones (`entry`,
/// may be null or unpublished); classes without an image in a split. Duplicates within a split are worth
/// knowing. Images in both splits are wrong beyond the published number, because the validation then measures
/// memory. `on_progress` is called now and then with the share that is done, 0 to 1.
DatasetCheck check_dataset(const Dataset& dataset, const DatasetEntry* entry,
                           const std::function<void(double)>& on_progress = {});

/// Compares the files in `dir` with the published MD5 sums; files without a published sum are ignored.
/// `entry` must have a published set.
std::vector<Finding> check_sums(const std::filesystem::path& dir, const DatasetEntry& entry);

}  // namespace tessera
