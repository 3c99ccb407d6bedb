#pragma once

#include <memory>

#include "apps/training/config.h"
#include "apps/training/evaluation.h"
#include "apps/training/precision.h"
#include "apps/training/task.h"
#include "data/loader.h"

namespace tessera {

/// The type in which a model is evaluated and its pictures are delivered: that of its training steps. Only a
/// diffusion model is evaluated in f32 in any case, since its score is its loss and the pictures are its
/// targets.
DType evaluation_dtype(Task task, Precision precision);

/// How a run of `config` is evaluated.
EvaluateOptions validation_options(const TrainConfig& config, const Computing& computing);

/// A loader over all pictures of `split`, as a run of `config` is evaluated on them. An evaluation that is
/// repeated with the same `computing` has the same bits.
std::unique_ptr<Loader> validation_loader(std::shared_ptr<const Split> split, const Pipeline& pipeline,
                                          const TrainConfig& config, const Computing& computing);

}  // namespace tessera
