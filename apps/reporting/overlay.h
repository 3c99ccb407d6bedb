#pragma once

#include <vector>

#include "apps/reporting/attention_maps.h"
#include "data/formats/image.h"

namespace tessera {

// The picture beside itself under each of the maps of a row: bright and warm where the map is high; further
// rows below, without the picture. All enlarged to at least 224 pixels a side, with white between them. Each
// map is scaled to its own range.
Image overlay(const Image& image, const std::vector<Heat>& first_row, const std::vector<Heat>& others);

}  // namespace tessera
