#pragma once

#include <string>

#include "engine/io/json.h"
#include "models/task.h"

namespace tessera {

/// The task of a model's config, or of a preset: {"preset": NAME, ...}; an unknown "arch" counts as a
/// classifier. Fails for an unknown preset.
Task task_of(const Json& model);

/// A run's score, which is larger the better: a classifier's top-1 accuracy, minus a diffusion model's loss
/// of held-out images, a segmenter's mean intersection over union of the classes. Its name and its number as
/// they are shown: "top-1" and "81.20 %".
std::string score_name(Task task);
std::string score_text(Task task, double score);

}  // namespace tessera
