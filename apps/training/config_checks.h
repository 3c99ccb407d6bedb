#pragma once

#include <string>
#include <vector>

#include "apps/training/config.h"

namespace tessera {

// Fails for keys of a config that contradict each other, or that one of them keeps from having any effect.
// Messages begin with `where`.
void check_schedule(const TrainConfig& config, const std::string& where);
void check_no_key_is_idle(const TrainConfig& config, const std::string& where);

// Sentences on what a new run of the config would do that is hardly meant, though no two keys contradict.
std::vector<std::string> doubts_about(const TrainConfig& config);

}  // namespace tessera
