#pragma once

#include "data/sets/entry.h"

namespace tessera {

// MNIST (LeCun et al., 1998) and Fashion-MNIST (Xiao et al., 2017): 28 x 28 grey images of ten classes,
// opened as RGB; an image_size of 32 pads them with 2 black pixels on each side. The folder holds
// {train,t10k}-{images-idx3,labels-idx1}-ubyte, with or without .gz. Opening fails for a missing file,
// whatever read_idx refuses, and images and labels that do not match.
DatasetEntry mnist_entry();
DatasetEntry fashion_mnist_entry();

}  // namespace tessera
