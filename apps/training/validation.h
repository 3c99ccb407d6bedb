#pragma once

#include <memory>

#include "apps/training/config.h"
#include "apps/training/precision.h"
#include "apps/training/task.h"
#include "data/loader.h"

namespace tessera {

// What a model is judged in, and given its pictures in, where its steps compute in `precision`: the same; but
// a diffusion model, whose score is its loss and whose targets are the pictures, in f32.
DType judged_in(Task task, Precision precision);

// Images that go forward at once when a run of `config` is judged (EvaluateOptions::micro_batch).
int64_t validation_micro_batch(const TrainConfig& config, Device device);

// All pictures of `split` as a run of `config` is judged by them: who walks them by the same `computing` gets
// the same bits.
std::unique_ptr<Loader> validation_loader(std::shared_ptr<const Split> split, const Pipeline& pipeline,
                                          const TrainConfig& config, const Computing& computing);

}  // namespace tessera
