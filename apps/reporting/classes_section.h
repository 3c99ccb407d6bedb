#pragma once

#include <string>
#include <vector>

#include "apps/training/evaluation.h"
#include "data/dataset.h"

namespace tessera {

// What an evaluation of a classifier or a segmenter says of its classes, as cards: every class with its
// share of right answers, the worst first; of a classifier the confusion matrix and the pairs that are
// confused most often.
std::string classes_section(const Evaluation& e, const std::vector<std::string>& names);

// The pictures that a classifier is most sure of and wrong about, at most `count`.
std::string mistakes_section(const std::vector<Judgement>& judgements, const Dataset& dataset, size_t count);

// The judgements of what was done worst, the worst first, at most `count`: a classifier's mistakes by its
// confidence, a segmenter's pictures by their share of right pixels.
std::vector<Judgement> worst(std::vector<Judgement> judgements, Task task, size_t count);

// The picture as a report shows it: made smaller where it is large.
Image thumbnail(Image image);

}  // namespace tessera
