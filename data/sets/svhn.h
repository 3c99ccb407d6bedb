#pragma once

#include "data/dataset.h"

namespace tessera {

// SVHN's cropped digits (Netzer et al., "Reading Digits in Natural Images", 2011): train_32x32.mat and
// test_32x32.mat in `dir` or dir/svhn, with X, bytes [32, 32, 3, N] column by column, and y, N labels from 1
// to 10, of which 10 is the digit 0. (extra_32x32.mat is not used.) Fails for a missing file, for whatever
// mat.h refuses, other arrays or sizes, and a label out of range.
Dataset open_svhn(const std::filesystem::path& dir);

}  // namespace tessera
