#pragma once

#include <array>
#include <string>
#include <vector>

namespace tessera {

// A file that a data set's authors publish.
struct PublishedFile {
  std::string url;
  int64_t bytes;  // 0: not known
  std::string md5;
  bool archive;  // to be unpacked
};

// What is known of a data set as it was published: where its files are, and what they hold.
struct PublishedSet {
  std::string name;
  std::vector<PublishedFile> files;  // empty: not to be had without an account
  std::string folder;                // where the files go or what the archive unpacks, below the data folder
  std::vector<std::string> markers;  // below that folder: all there once the set is
  int64_t train = 0, validation = 0, classes = 0;
  int64_t leaks = 0;  // validation pictures that the training split holds too
  int side = 0;       // of every picture; 0: they differ
  // The sums of the files in the folder, where they are published.
  std::vector<std::array<std::string, 2>> sums;  // name, MD5
  std::string how_to_get;                        // where there are no files
};

// Null for a data set that nobody publishes: folder, shapes.
const PublishedSet* published(const std::string& name);

}  // namespace tessera
