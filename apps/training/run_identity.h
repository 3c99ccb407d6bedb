#pragma once

// What makes a run this run: a saved state is gone on with under the config that it was saved under alone.

#include <string>
#include <vector>

#include "apps/training/config.h"

namespace tessera {

// The config without what may differ between machines (folders of data and weights) and without what is read
// only at the beginning (init).
Json identity_of(const TrainConfig& config);

// "optimizer.lr is 0.01, the state was saved with 0.003", a line for each key in which they differ.
std::vector<std::string> differences(const Json& saved, const Json& now);

// The keys that --resume may change with --set: how long and how fast the run goes on.
const std::vector<std::string>& changeable_keys();

// The key of "key=value".
std::string assigned_key(const std::string& assignment);

// Sets "key=value" of a config that a run goes on with. Fails for a key that is not changeable.
void change_key(Json& config, const std::string& assignment);

}  // namespace tessera
