#pragma once

// The runs of a folder that table 2 of SL-ViT has a row for.

#include <nlohmann/json.hpp>
#include <string>

#include "apps/reporting/run_list.h"
#include "engine/io/json.h"

namespace tessera {

/// The rows of the list with "preset", the model of the published row whose network the run trained, as
/// the paper does: key by key the same, on all of the data set's pictures, in their own size and classes.
/// Otherwise "preset" is null and "left_out" says why.
Json runs_for_table(const RunList& list);

/// "2 runs are in no row: a (on shapes), b (model.attention.temperature is 0.25, the row has none)"; "" where
/// every run is in one.
std::string left_out_line(const Json& runs);

}  // namespace tessera
