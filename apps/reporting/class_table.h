#pragma once

// Scores of an evaluation class by class, for tables, files and reports.

#include <string>
#include <vector>

#include "apps/training/evaluation.h"

namespace tessera {

// A row for each class of a classifier: class, name, images, predicted, recall, precision. Recall is the
// share of a class's pictures that are predicted as it, precision the share of its predictions that are
// right; null where there are none.
Json class_rows(const Evaluation& e, const std::vector<std::string>& names);

// A row for each class of a segmenter: class, name, iou; null for a class that no pixel has or is given.
Json iou_rows(const Evaluation& e, const std::vector<std::string>& names);

// The confusion matrix: numbers of pictures by label (rows) and prediction (columns). [K][K]
Json confusion_rows(const Evaluation& e);

// How many images of class `label` were predicted as class `predicted`.
struct Confused {
  int64_t images, label, predicted;
};
// The at most `count` pairs that are confused most often, the most frequent first.
std::vector<Confused> most_confused(const Evaluation& e, size_t count);

}  // namespace tessera
