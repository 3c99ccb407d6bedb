#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/reporting/run_record.h"

namespace tessera {

/// The keys of a config and their values as text: "optimizer.lr", "0.001".
using ConfigKeys = std::vector<std::pair<std::string, std::string>>;

/// Appends the keys of a JSON document, each with its path from `path` on.
void flatten(const Json& value, const std::string& path, ConfigKeys& to);

/// The value of a key; a null pointer where there is none.
const std::string* find(const ConfigKeys& keys, const std::string& key);

/// The keys whose values are not the same in all of the runs, in their order.
std::vector<std::string> differing_keys(std::span<const ConfigKeys> runs);

}  // namespace tessera
