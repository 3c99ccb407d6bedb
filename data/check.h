#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/fetch/published.h"

namespace tessera {

// Something that a look at all pictures has found.
struct Finding {
  std::string kind;     // "unreadable", say
  std::string message;  // a sentence for a person
  int64_t count = 0;
  std::vector<std::string> examples;  // some of them, by their sources
  bool wrong = true;                  // false: worth knowing
  int64_t same_files = 0;  // of duplicates and leakage: those that are equal byte for byte as files
};

struct DatasetCheck {
  std::vector<Finding> findings;
  std::array<int64_t, 2> images{};                // in train, validation
  std::array<std::vector<int64_t>, 2> histogram;  // of the labels
  std::array<int, 4> sizes{};                     // least and most height, least and most width

  bool passed() const;
};

// Looks at every picture and mask, in parallel: those that cannot be decoded; those that have not the size
// that all should have; equal files and equal pictures within a split and in both, and equal pictures of
// different classes; counts and labels against what was published (`set`, or null); classes that a split
// lacks. Duplicates within a split are worth knowing; more equal pictures in both splits than were published
// so are wrong, for then the validation measures memory. `at_work` is called now and then with the share that
// is done.
DatasetCheck check_dataset(const Dataset& dataset, const PublishedSet* set,
                           const std::function<void(double)>& at_work = {});

// What the files of `dir` are by their MD5 sums against the published ones.
std::vector<Finding> check_sums(const std::filesystem::path& dir, const PublishedSet& set);

}  // namespace tessera
