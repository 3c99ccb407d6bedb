#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "engine/io/json.h"
#include "models/parts/attention.h"

namespace tessera {

// `options` of stage i of `stages`: every list in it is replaced by its i-th entry. Fails, naming the key
// after `path`, for a list of another length.
Json stage_options(const Json& options, size_t i, size_t stages, const std::string& path);

// The same for the config's "attention" object: a list inside of its decay is taken by stage too.
Json staged_attention_options(const Json& attention, size_t i, size_t stages);

// The config's "attention" object for every stage, `dims` being their widths.
std::vector<AttentionOptions> read_staged_attention(Fields& fields, const std::vector<int64_t>& dims);

// The rates of `rates` for blocks [first, first + count) of a stage.
std::vector<double> rates_of(const std::vector<double>& rates, int64_t first, int64_t count);

}  // namespace tessera
