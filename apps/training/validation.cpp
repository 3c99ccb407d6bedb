#include "apps/training/validation.h"

#include "apps/training/evaluation.h"

namespace tessera {

DType judged_in(Task task, Precision precision) {
  return precision == Precision::bf16 && task != Task::diffuse ? DType::bf16 : DType::f32;
}

std::unique_ptr<Loader> validation_loader(std::shared_ptr<const Split> split, const Pipeline& pipeline,
                                          const TrainConfig& config, const Computing& computing) {
  const Task task = task_of(config.model);
  // A GPU takes four of a classifier's batches at a time: without gradients they take no more memory than one
  // in training, and a quarter of the launches.
  const int64_t at_once = computing.device != Device::cpu && task == Task::classify ? 4 : 1;
  return evaluation_loader(std::move(split), pipeline, at_once * config.batch,
                           {.device = computing.device,
                            .dtype = judged_in(task, computing.precision),
                            .resident = config.data.on_device});
}

}  // namespace tessera
