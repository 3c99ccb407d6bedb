#pragma once

// What an evaluation says class by class, for tables, files and reports.

#include <string>
#include <vector>

#include "apps/training/evaluation.h"

namespace tessera {

// A classifier's classes: class, name, images, predicted, recall, precision, each an object. Recall is the
// share of a class's pictures that are found, precision that of its predictions that are right; null for a
// class without any.
Json class_rows(const Evaluation& e, const std::vector<std::string>& names);

// A segmenter's: class, name, iou; null for a class that no pixel has or is given.
Json iou_rows(const Evaluation& e, const std::vector<std::string>& names);

// Pictures by label (rows) and prediction. [K][K]
Json matrix_of(const Evaluation& e);

// Two classes of which one is taken for the other.
struct Confused {
  int64_t images, label, predicted;
};
// The pairs that are confused most often, at most `count`.
std::vector<Confused> most_confused(const Evaluation& e, size_t count);

}  // namespace tessera
