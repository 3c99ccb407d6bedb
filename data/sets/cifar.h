#pragma once

#include "data/dataset.h"

namespace tessera {

// The binary versions of CIFAR-10 and CIFAR-100 (Krizhevsky, "Learning multiple layers of features from tiny
// images", 2009): records of label bytes, then 32 x 32 pixels as three planes, red, green, blue.
struct CifarFormat {
  std::string dataset, folder, archive;
  std::vector<std::string> train_files;
  std::string test_file, names_file;
  int64_t train_records, test_records;  // in each file
  int label_bytes, label_at;            // bytes before the pixels; which of them is the label
  int64_t classes;
  Normalisation normalisation;
};

CifarFormat cifar10_format();
CifarFormat cifar100_format(bool coarse_labels);

// The data set in `dir`: the folder that the archive unpacks, or its parent. Fails for a missing file, a file
// that does not have exactly the format's records, and a label out of range.
Dataset open_cifar(const std::filesystem::path& dir, const CifarFormat& format);

}  // namespace tessera
