#pragma once

#include <string>
#include <vector>

#include "apps/reporting/attention_maps.h"
#include "data/formats/image.h"

namespace tessera {

// A map of shares of attention and what the sheet calls it: "mean of heads", "head 3".
struct NamedMap {
  std::string name;
  HeatMap map;
};

// One sheet. Lines at the top say what the picture is (`title`) and what the model makes of it (`note`). The
// first row has the picture, then the picture under each map of `first_row`, bright and warm where the map is
// high; the rows below have it under each map of `heads`. All are enlarged to at least 224 pixels a side,
// each under its name and its largest number, in multiples of an even share (1 / number of places). Colours
// begin at 0 everywhere and end at the largest number: of the map itself in the first row, of all heads
// together in the rows below, so that heads can be compared. The last line is the legend of the colours.
Image overlay(const Image& image, const std::vector<NamedMap>& first_row, const std::vector<NamedMap>& heads,
              const std::string& title, const std::string& note);

}  // namespace tessera
