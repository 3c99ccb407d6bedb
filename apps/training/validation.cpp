#include "apps/training/validation.h"

#include <algorithm>

#include "apps/training/step.h"

namespace tessera {

DType evaluation_dtype(Task task, Precision precision) {
  return precision == Precision::bf16 && task != Task::diffuse ? DType::bf16 : DType::f32;
}

EvaluateOptions validation_options(const TrainConfig& config, const Computing& computing) {
  EvaluateOptions options;
  options.device = computing.device;
  options.micro_batch = options.device == Device::cpu ? config.micro_batch.value_or(cpu_micro_batch) : 0;
  options.ranks = computing.ranks;
  return options;
}

std::unique_ptr<Loader> validation_loader(std::shared_ptr<const Split> split, const Pipeline& pipeline,
                                          const TrainConfig& config, const Computing& computing) {
  const Task task = task_of(config.model);
  const bool on_cpu = computing.device == Device::cpu;
  const int64_t micro = config.micro_batch.value_or(0),
                images = on_cpu || micro == 0 ? config.batch : std::min(micro, config.batch);
  // A GPU takes four times a classifier's images at once: without gradients they take no more memory than in
  // training, and a quarter of the launches.
  const int64_t at_once = !on_cpu && task == Task::classify ? 4 * images : images;
  return evaluation_loader(std::move(split), pipeline, at_once,
                           {.device = computing.device,
                            .dtype = evaluation_dtype(task, computing.precision),
                            .resident = config.data.on_device},
                           validation_options(config, computing));
}

}  // namespace tessera
