#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/task.h"
#include "data/loader.h"
#include "models/model.h"

namespace tessera {

// How well a model does on labelled pictures. Of a diffusion model, images and loss alone.
struct Evaluation {
  Task task = Task::classify;
  int64_t classes = 0, images = 0;
  int64_t correct = 0, correct5 = 0;  // label has the largest logit, is among the five largest
  double loss_sum = 0;                // cross entropy, without smoothing; a diffusion model's training loss
  std::vector<int64_t> confusion;     // pictures by label and prediction. [K, K]

  double loss() const { return loss_sum / static_cast<double>(images); }
  double top1() const { return static_cast<double>(correct) / static_cast<double>(images); }
  double top5() const { return static_cast<double>(correct5) / static_cast<double>(images); }
  int64_t at(int64_t label, int64_t predicted) const {
    return confusion[static_cast<size_t>(label * classes + predicted)];
  }

  double score() const;  // by task; see task.h

  // Counts the rows of logits [B, K].
  void add(const Tensor& logits, const Tensor& labels);
  // Counts images by their mean loss alone.
  void add_loss(double mean, int64_t count);

  // The three last columns of metrics.csv, loss and accuracies, empty where there is nothing; the same as
  // JSON, without what there is not; and in words.
  std::string csv() const;
  Json json() const;
  std::string text() const;
};

struct EvaluateOptions {
  int64_t micro_batch = 32;  // images that go forward at once; 0: the whole batch
  Device device = Device::cpu;
  // Asked before each batch, with the images done so far; false ends the evaluation.
  std::function<bool(int64_t)> go_on;
};

// Walks one epoch of the loader. A diffusion model meets the same noise at the same times on each walk in the
// same batches.
// Nothing if go_on ended it.
std::optional<Evaluation> evaluate(const Model& model, Loader& loader, const EvaluateOptions& options);

// A loader over all of `split`, in order, as evaluation sees it.
std::unique_ptr<Loader> evaluation_loader(std::shared_ptr<const Split> split, const Pipeline& pipeline,
                                          int64_t batch);

}  // namespace tessera
