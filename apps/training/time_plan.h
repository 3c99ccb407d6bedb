#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/training/config.h"

namespace tessera {

/// How fast a run goes on this machine.
struct Speed {
  double step_seconds = 0;        ///< of one step, with its wait for data
  double evaluation_seconds = 0;  ///< of one evaluation of the whole validation split
  int64_t steps_in_epoch = 1;
};

/// The steps that fit into `seconds`, the evaluations after every `eval_every` epochs and after the last step
/// included; at least 1. From s = N step + (N / (E eval_every) + 1) evaluation, with E steps an epoch.
int64_t steps_that_fit(double seconds, const Speed& speed, int64_t eval_every);

/// Makes the config's run `steps` steps long, with E steps an epoch: warm-up and cool-down keep their share
/// of the run, and the learning rate has decayed at its end.
void fit_config(TrainConfig& config, int64_t steps, int64_t steps_in_epoch);

/// The keys of the config that fit_config() may change.
const std::vector<std::string>& fitted_keys();

}  // namespace tessera
