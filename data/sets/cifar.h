#pragma once

#include "data/sets/entry.h"

namespace tessera {

DatasetEntry cifar10_entry();
DatasetEntry cifar100_entry();

// The binary versions of CIFAR-10 and CIFAR-100 (Krizhevsky, "Learning multiple layers of features from tiny
// images", 2009). A record holds the label bytes, then 32 x 32 pixels as three planes: red, green, blue.
struct CifarFormat {
  std::string dataset, folder, archive;
  std::vector<std::string> train_files;
  std::string test_file, names_file;
  int64_t train_records, test_records;  // per file
  int label_bytes;                      // label bytes before the pixels
  int label_at;                         // index of the label byte that is used
  int64_t classes;
  Normalisation normalisation;
};

CifarFormat cifar10_format();
CifarFormat cifar100_format(bool coarse_labels);

// Opens the data set from `dir`, which is the folder that the archive unpacks or the parent of that. Fails
// for a missing file, a file whose length is not that of the format's records, and a label out of range.
Dataset open_cifar(const std::filesystem::path& dir, const CifarFormat& format);

}  // namespace tessera
