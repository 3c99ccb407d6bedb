#pragma once

#include "data/sets/entry.h"

namespace tessera {

// SVHN's cropped digits (Netzer et al., "Reading Digits in Natural Images", 2011): train_32x32.mat and
// test_32x32.mat in the given folder or its sub-folder svhn. X holds bytes, [32, 32, 3, N] in column-major
// order; y holds N labels from 1 to 10, of which 10 is the digit 0. extra_32x32.mat is not used. Opening
// fails for a missing file, whatever read_mat refuses, other arrays or sizes, and a label out of range.
DatasetEntry svhn_entry();

}  // namespace tessera
