#include "apps/training/batch_choice.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "apps/training/batch_norm.h"
#include "apps/training/footprint.h"
#include "apps/training/step.h"
#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/core/storage.h"
#include "models/model.h"

namespace tessera {

namespace {

constexpr int64_t most = 1024, least = 8, steps_in_epoch = 50;
constexpr int64_t batches_ahead = 3;  // of pictures, that the loader holds beside the step's own

// The first number of a file, such as a control group's limit; 0 where there is none ("max").
int64_t number_in(const char* path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? number : 0;
}

int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  int64_t kib = 0;
  for (std::string key, rest; file >> key; std::getline(file, rest))
    if (key == "MemAvailable:" && file >> kib) break;
  return kib * 1024;
}

bool fits_on_device(int64_t bytes, Device device) {
  try {
    Storage(device, static_cast<size_t>(bytes) / 4 * 5);
  } catch (const Error&) {
    return false;
  }
  release_cached(device);
  return true;
}

int64_t power_of_two_below(int64_t limit) {
  int64_t power = 1;
  while (2 * power <= limit) power *= 2;
  return power;
}

}  // namespace

int64_t images_at_once(const TrainConfig& config, int64_t batch, Device device) {
  const DryRun dry;
  const Model model = build(config.model);
  const bool whole = has_batch_norm(model) && config.batch_norm == BatchNormStatistics::batch;
  const int64_t chosen = config.micro_batch.value_or(whole || device != Device::cpu ? 0 : cpu_micro_batch);
  return chosen == 0 ? batch : std::min(batch, chosen);
}

int64_t bytes_of_step(const TrainConfig& config, int64_t batch, Device device) {
  const StepMemory memory = step_memory_of(config.model, images_at_once(config, batch, device));
  const int64_t side = config.model.at("image_size"), channels = config.model.value("in_channels", 3),
                pictures = (1 + batches_ahead) * batch * channels * side * side *
                           static_cast<int64_t>(sizeof(float));
  return memory.total() + pictures + (config.ema > 0 ? memory.weights : 0);
}

int64_t free_memory() {
  const int64_t available = available_memory(), limit = number_in("/sys/fs/cgroup/memory.max");
  if (limit == 0) return available;
  const int64_t left = std::max<int64_t>(0, limit - number_in("/sys/fs/cgroup/memory.current"));
  return available == 0 ? left : std::min(available, left);
}

BatchChoice choose_batch(const TrainConfig& config, int64_t images, Device device) {
  BatchChoice choice{.free_bytes = device == Device::cpu ? free_memory() : 0};
  const auto fits = [&](int64_t bytes) {
    if (device != Device::cpu) return fits_on_device(bytes, device);
    return choice.free_bytes == 0 || bytes <= choice.free_bytes / 5 * 4;
  };
  choice.batch = power_of_two_below(std::min(most, std::max(least, images / steps_in_epoch)));
  choice.batch =
      std::max<int64_t>(1, std::min(choice.batch, power_of_two_below(std::max<int64_t>(1, images))));
  for (;; choice.batch /= 2) {
    choice.step_bytes = bytes_of_step(config, choice.batch, device);
    if (fits(choice.step_bytes)) return choice;
    check(choice.batch > 1, "train: --batch auto: a step of one picture takes ", choice.step_bytes,
          " bytes, ", choice.free_bytes,
          " are free; take a smaller model or smaller pictures (--image-size)");
    choice.by_memory = true;
  }
}

}  // namespace tessera
