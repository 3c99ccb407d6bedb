#pragma once

#include <string>

#include "engine/io/json.h"

namespace tessera {

// What a model learns, and so by what a run of it is judged: top-1 accuracy, the loss of held-out images,
// the mean over the classes of intersection over union.
enum class Task { classify, diffuse, segment };

// Of a model's config, or of a preset: {"preset": NAME, ...}. Fails for an unknown preset.
Task task_of(const Json& model);

// A run is best where its score is largest: the accuracy; minus the loss; the mean IoU. Its name and its
// number as they are shown: "top-1" and "81.20 %".
std::string score_name(Task task);
std::string score_text(Task task, double score);

}  // namespace tessera
