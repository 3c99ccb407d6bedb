#pragma once

#include <string>
#include <vector>

#include "apps/training/evaluation.h"
#include "data/dataset.h"

namespace tessera {

// The classes of an evaluation as HTML cards: every class with its accuracy or IoU, the worst first; for a
// classifier also the confusion matrix and the pairs that are confused most often.
std::string classes_section(const Evaluation& e, const std::vector<std::string>& names);

// The at most `count` wrong predictions with the highest confidence, with their pictures.
std::string mistakes_section(const std::vector<Judgement>& judgements, const Dataset& dataset, size_t count);

// The at most `count` worst judgements, the worst first: a classifier's mistakes by their confidence, a
// segmenter's pictures by their share of right pixels.
std::vector<Judgement> worst_judgements(std::vector<Judgement> judgements, Task task, size_t count);

// Makes a large picture small enough for a report; a small one is returned unchanged.
Image thumbnail(Image image);

}  // namespace tessera
