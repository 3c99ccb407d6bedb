#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/training/task.h"
#include "data/loader.h"
#include "models/model.h"
#include "models/segment_inference.h"

namespace tessera {

// One picture as a classifier or a segmenter saw it.
struct Judgement {
  int64_t picture;                     // its number in the split
  int64_t label = -1, predicted = -1;  // a classifier's
  int64_t rank = 0;                    // likewise: how many classes it finds likelier than the label
  double confidence = 0;               // the probability of `predicted`; of a segmenter, none
  double right = 0;                    // whether they agree, 0 or 1; a segmenter's share of right pixels
  double loss = 0;                     // cross entropy, a classifier's
};

// How well a model does on labelled pictures. Of a diffusion model, images and loss alone; of a segmenter
// those and its pixels.
struct Evaluation {
  Task task = Task::classify;
  int64_t classes = 0, images = 0;
  int64_t correct = 0, correct5 = 0;  // label has the largest logit, is among the five largest
  double loss_sum = 0;                // cross entropy, a segmenter's by pixels, without smoothing; a
                                      // diffusion model's training loss
  std::vector<int64_t> confusion;     // pictures by label and prediction. [K, K]
  std::optional<SegmentationCounts> pixels;

  double loss() const { return loss_sum / static_cast<double>(images); }
  double top1() const { return static_cast<double>(correct) / static_cast<double>(images); }
  double top5() const { return static_cast<double>(correct5) / static_cast<double>(images); }
  int64_t at(int64_t label, int64_t predicted) const {
    return confusion[static_cast<size_t>(label * classes + predicted)];
  }

  double score() const;  // by task; see task.h

  // Counts the rows of logits [B, K] f32, both on the CPU; what was made of each, `picture` being its row.
  std::vector<Judgement> add(const Tensor& logits, const Tensor& labels);
  // Counts the pixels of scores [B, K, H, W] by masks [B, H, W].
  void add_pixels(const Tensor& scores, const Tensor& masks);
  // Counts images by their mean loss alone.
  void add_loss(double mean, int64_t count);

  // The last columns of metrics.csv: loss, top-1 and top-5, empty where there are none, and a segmenter's
  // mean IoU and pixel accuracy. The same as JSON, without what there is not; and in words.
  std::string csv() const;
  Json json() const;
  std::string text() const;
};

// What the task learns from: the labels [B], or a segmenter's masks [B, H, W].
const Tensor& targets_of(const Batch& batch, Task task);

// A pass over all pictures of a split, with what was made of each.
struct JudgedPass {
  Evaluation evaluation;
  std::vector<Judgement> judgements;
};

struct EvaluateOptions {
  // Images that go forward at once; 0: a batch of the loader. Not given: 32 on a CPU, a batch on a GPU.
  std::optional<int64_t> micro_batch = std::nullopt;
  Device device = Device::cpu;
  // Asked before each batch, with the images done so far; false ends the evaluation.
  std::function<bool(int64_t)> go_on;
  // Where it is given, a judgement of each picture is added to it; none by a diffusion model.
  std::vector<Judgement>* judgements = nullptr;
};

// Walks one epoch of the loader, in the type of the model's weights. A diffusion model meets the same noise
// at the same times on each walk in the same batches. Nothing if go_on ended it.
std::optional<Evaluation> evaluate(const Model& model, Loader& loader, const EvaluateOptions& options);

// A loader over all of `split`, in order, as evaluation sees it; delivered to the CPU if the split has masks.
std::unique_ptr<Loader> evaluation_loader(std::shared_ptr<const Split> split, const Pipeline& pipeline,
                                          int64_t batch, const DeliveryOptions& delivery = {});

}  // namespace tessera
