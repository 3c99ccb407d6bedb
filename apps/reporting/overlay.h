#pragma once

#include <vector>

#include "apps/reporting/attention_maps.h"
#include "data/formats/image.h"

namespace tessera {

// One sheet: the first row has the picture, then the picture under each map of `first_row`, bright and warm
// where the map is high; the rows below have it under each map of `others`. All are enlarged to at least 224
// pixels a side, with white between them. Each map is scaled to its own range.
Image overlay(const Image& image, const std::vector<HeatMap>& first_row, const std::vector<HeatMap>& others);

}  // namespace tessera
