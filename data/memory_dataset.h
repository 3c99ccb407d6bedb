#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace tessera {

/// Labelled 8-bit pictures of one size.
struct Pictures {
  int height = 0, width = 0;
  int channels = 3;             ///< or 1, grey
  std::vector<uint8_t> pixels;  ///< [size, height, width, channels]
  std::vector<int32_t> labels;  ///< class numbers, [size]
};

/// A data set of pictures that the program has in memory; pixels are normalised by the mean and the deviation
/// of the training pictures. Fails for splits of different sizes, pixels that do not fill as many pictures as
/// there are labels, an empty split, and a label that is no class.
Dataset memory_dataset(std::vector<std::string> class_names, Pictures train, Pictures validation);

}  // namespace tessera
