#pragma once

// What `tessera train` does before a run, to tell what the run will be: --dry-run and --overfit-batch.
// Neither leaves a file behind.

#include <chrono>
#include <cstdint>

#include "apps/training/config.h"
#include "apps/training/precision.h"
#include "data/dataset.h"

namespace tessera {

// The config of --overfit-batch: one batch of pictures without augmentation, mixing or smoothing.
TrainConfig single_batch_config(TrainConfig config);

// `tessera train --dry-run`: steps, an evaluation, the files of an epoch, the report, and a resumption, each
// once, in a temporary folder that is removed; prints what each took and how long the whole run would.
// `config` is a whole one, `opened` the seconds that opening the data set took. Fails where a phase does.
void dry_run(const TrainConfig& config, const Dataset& dataset, const Computing& computing, double opened,
             bool json);

// `tessera train --overfit-batch`: steps on one and the same batch, 300 at most or as many as the config's
// `steps`, at the config's highest learning rate after ten steps of warm-up, until the loss is a tenth of the
// first one (a half for a diffusion model, whose noise is drawn anew each time). Prints the losses, and
// returns whether it came to that: a model that cannot learn one batch by heart is not wired right. `config`
// is that of single_batch_config, and `dataset` its data.
bool overfit_batch(const TrainConfig& config, const Dataset& dataset, const Computing& computing, bool json);

}  // namespace tessera
