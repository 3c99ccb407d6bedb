#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "engine/io/json.h"
#include "models/parts/attention.h"

namespace tessera {

// The options of stage i of `stages`: every list in `options` is replaced by its i-th entry. Fails for a list
// of another length; the message names the key as path.key.
Json stage_options(const Json& options, size_t i, size_t stages, const std::string& path);

// The config's "attention" object of stage i; lists inside its "decay" are taken by stage too.
Json staged_attention_options(const Json& attention, size_t i, size_t stages);

// Reads the config's "attention" object for every stage; `dims` are the stages' widths.
std::vector<AttentionOptions> read_staged_attention(Fields& fields, const std::vector<int64_t>& dims);

}  // namespace tessera
