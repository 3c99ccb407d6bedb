#include "apps/training/former_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/dispatch.h"
#include "models/model.h"

namespace tessera {

bool written_before_batch_norm(const Json& document) {
  if (document.contains("batch_norm") || !document.value("model", Json()).contains("arch")) return false;
  const auto always = {"about", "batch", "micro_batch", "epochs",     "passes", "optimizer", "schedule",
                       "clip",  "data",  "augment",     "eval_every", "seed",   "checkpoint"};
  return std::all_of(always.begin(), always.end(), [&](const char* key) { return document.contains(key); });
}

void keep_former_meaning(TrainConfig& config) {
  constexpr int64_t former_default = 64;
  const DryRun dry;
  if (has_batch_norm(build(config.model)))
    config.micro_batch = 0;
  else if (config.micro_batch == former_default)
    config.micro_batch.reset();
}

}  // namespace tessera
