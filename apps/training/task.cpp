#include "apps/training/task.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "models/architectures.h"
#include "models/presets.h"

namespace tessera {

Task task_of(const Json& model) {
  // A preset has one architecture, whatever its size.
  const Json config =
      model.contains("preset") ? preset(model.at("preset").get<std::string>(), 64, 10) : model;
  const Json arch = config.value("arch", Json());
  const Architecture* row = arch.is_string() ? find_architecture(arch.get<std::string>()) : nullptr;
  return row ? row->task : Task::classify;
}

std::string score_name(Task task) {
  return task == Task::diffuse ? "validation loss" : task == Task::segment ? "mean IoU" : "top-1";
}

std::string score_text(Task task, double score) {
  return task == Task::diffuse ? fmt::format("{:.4f}", -score) : fmt::format("{:.2f} %", 100 * score);
}

}  // namespace tessera
