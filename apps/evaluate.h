#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "data/loader.h"
#include "models/model.h"

namespace tessera {

// How well a model does on labelled pictures.
struct Evaluation {
  int64_t classes = 0, images = 0;
  int64_t correct = 0, correct5 = 0;  // label has the largest logit, is among the five largest
  double loss_sum = 0;                // cross entropy, without smoothing
  std::vector<int64_t> confusion;     // pictures by label and prediction. [K, K]

  double loss() const { return loss_sum / static_cast<double>(images); }
  double top1() const { return static_cast<double>(correct) / static_cast<double>(images); }
  double top5() const { return static_cast<double>(correct5) / static_cast<double>(images); }
  int64_t at(int64_t label, int64_t predicted) const {
    return confusion[static_cast<size_t>(label * classes + predicted)];
  }

  // Counts the rows of logits [B, K].
  void add(const Tensor& logits, const Tensor& labels);
};

struct EvaluateOptions {
  int64_t micro_batch = 32;  // images that go forward at once; 0: the whole batch
  Device device = Device::cpu;
  // Asked before each batch, with the images done so far; false ends the evaluation.
  std::function<bool(int64_t)> go_on;
};

// Walks one epoch of the loader. Nothing if go_on ended it.
std::optional<Evaluation> evaluate(const Model& model, Loader& loader, const EvaluateOptions& options);

// A loader over all of `split`, in order, as evaluation sees it.
std::unique_ptr<Loader> evaluation_loader(std::shared_ptr<const Split> split, const Pipeline& pipeline,
                                          int64_t batch);

}  // namespace tessera
